"""Rows made clean by themselves, as an intake makes those of a whole table."""

from __future__ import annotations

from collections.abc import Mapping

from penstock_apps.products.products import Product, normalizer


def normalize_row(cells: Mapping[str, str | None]) -> Product:
    """The clean values of a row's cells, by canonical field."""
    return normalizer(tuple(cells))([text or "" for text in cells.values()])
