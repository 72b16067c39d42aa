"""Writes files to try the app with: a table of products, pictures of barcodes, and how the demo shop is asked."""

from __future__ import annotations

from pathlib import Path

import orjson

from penstock.errors import ConfigurationError
from penstock_apps.products.retailer import (
    CATALOGUE,
    SAMPLE_NOT_FOUND,
    SAMPLE_UNUSABLE,
    Retailer,
    sample_csv,
    sample_image,
)

TABLE = "products.csv"
PICTURES = ("kettle.png", "garden-hose.png")
RETAILERS = "retailers.json"
ROWS_AS_THEY_END = (len(CATALOGUE), SAMPLE_NOT_FOUND, SAMPLE_UNUSABLE)
"""Rows of the table that are found at the demo shop, that it does not have, and that cannot be looked up."""

_PICTURED = (0, 3)
_SHOP = "demo-shop"


def write_samples(directory: Path) -> tuple[Path, list[Path]]:
    """Write the table and the pictures into ``directory``, the same each time."""
    directory.mkdir(parents=True, exist_ok=True)
    table = directory / TABLE
    table.write_bytes(sample_csv())
    pictures = [directory / name for name in PICTURES]
    for picture, at in zip(pictures, _PICTURED, strict=True):
        picture.write_bytes(sample_image(at))
    return table, pictures


def write_retailers(directory: Path, shop: Retailer) -> Path:
    """Write the file ``PRODUCT_PROVIDERS`` may name while the demo shop is open."""
    path = directory / RETAILERS
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps([shop.configuration(_SHOP)], option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}; start it in a folder that you may write to",
            code="FILES_NOT_WRITABLE",
        ) from None
    return path
