"""The catalogs: what the last scan of each has found, what is to be done, and what a scan asks."""

from __future__ import annotations

from pathlib import Path

from penstock.application import Page, Pages

pages = Pages(
    folder=Path(__file__).parent,
    pages=(Page("Catalogs", address="catalogs", template="catalogs.html"),),
)
