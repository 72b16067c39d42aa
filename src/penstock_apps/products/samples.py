"""Writes files to try the app with: a table of products, pictures of barcodes, and how the demo shop is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import orjson

from penstock.errors import ConfigurationError
from penstock.private_files import make_private_folder
from penstock.samples import SampleJob, Samples, Visitor
from penstock_apps.products.retailer import (
    CATALOGUE,
    SAMPLE_NOT_FOUND,
    SAMPLE_UNUSABLE,
    Retailer,
    demo_retailer,
    sample_csv,
    sample_image,
)
from penstock_apps.products.settings import ProductSettings

TABLE = "products.csv"
PICTURES = ("kettle.png", "garden-hose.png")
RETAILERS = "retailers.json"
ROWS_AS_THEY_END = (len(CATALOGUE), SAMPLE_NOT_FOUND, SAMPLE_UNUSABLE)
"""Rows of the table that are found at the demo shop, that it does not have, and that cannot be looked up."""

_PICTURE_NUMBERS = (0, 3)
_SHOP = "demo-shop"


class ProductSamples(Samples):
    """A table whose rows go three ways, and two pictures of barcodes, looked up at a shop on this machine."""

    _shop_is_ours = False

    @contextmanager
    def set_up(self, settings: ProductSettings) -> Iterator[ProductSettings]:
        """Open a shop, unless there are retailers already: samples are not looked up at other retailers."""
        if settings.providers.strip():
            yield settings
            return
        with demo_retailer() as shop:
            self._shop_is_ours = True
            yield settings.model_copy(update={"providers": str(write_retailers(self.folder.absolute(), shop))})

    def why_left_out(self) -> str | None:
        """Samples are looked up at our own shop, and uploaded."""
        if not self._shop_is_ours:
            return "PRODUCT_PROVIDERS names your own retailers; samples ask none"
        return None if self.engine.db_ingest_enabled else "DB_INGEST_ENABLED is off, so nothing can be uploaded"

    def submit(self, visitor: Visitor) -> Iterator[SampleJob]:
        """Upload the table, and the pictures together."""
        table, pictures = write_samples(self.folder)
        job = UUID(visitor.upload("/api/jobs", table)["jobId"])
        yield SampleJob(job, f"products: {table.name}", counts=ROWS_AS_THEY_END)
        job = UUID(visitor.upload("/api/jobs", *pictures)["jobId"])
        yield SampleJob(job, f"products: {len(pictures)} pictures", counts=(len(pictures), 0, 0))


def write_samples(directory: Path) -> tuple[Path, list[Path]]:
    """Write the table and the pictures into ``directory``, the same each time."""
    make_private_folder(directory)
    table = directory / TABLE
    table.write_bytes(sample_csv())
    pictures = [directory / name for name in PICTURES]
    for picture, at in zip(pictures, _PICTURE_NUMBERS, strict=True):
        picture.write_bytes(sample_image(at))
    return table, pictures


def write_retailers(directory: Path, shop: Retailer) -> Path:
    """Write the file ``PRODUCT_PROVIDERS`` may name while the demo shop is open."""
    path = directory / RETAILERS
    try:
        make_private_folder(directory)
        path.write_bytes(orjson.dumps([shop.configuration(_SHOP)], option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}; start it in a folder that you may write to",
            code="FILES_NOT_WRITABLE",
        ) from None
    return path
