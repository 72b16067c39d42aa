"""Products as their users know them: hand in a table or pictures, and find each product at a retailer."""

from __future__ import annotations

import os

from penstock import Kind, Penstock, Policy
from penstock.ingest import SourceSettings
from penstock.settings import read_settings
from penstock_apps.products.file_reader import FileReader
from penstock_apps.products.http_json import load_providers
from penstock_apps.products.intake import ProductIntake
from penstock_apps.products.kinds import PICTURES, TABLE, ProductPictures, ProductSearch, ProductTable
from penstock_apps.products.payloads import (
    ArchiveParams,
    PictureInput,
    PictureParams,
    RowInput,
    TableParams,
)
from penstock_apps.products.providers import Providers
from penstock_apps.products.repository import BatchWriter, SearchEventRepository
from penstock_apps.products.settings import ProductSettings

_BACKOFF = "1s exponential up to 5m"


class Products:
    """The products application on one Penstock."""

    def __init__(self, app: Penstock, settings: ProductSettings, *, backoff: str = _BACKOFF) -> None:
        self.settings = settings
        self.repository = SearchEventRepository(app)
        files = FileReader(app, settings)
        self.intake = ProductIntake(app, files, read_settings(SourceSettings))
        # What is wrong with them is said before the first row.
        self._retailers = load_providers(settings.providers, os.environ)
        policy = Policy(
            retries=settings.max_attempts_error - 1,
            not_found_retries=settings.max_attempts_not_found - 1,
            backoff=backoff,
            reprocess=True,
        )
        rows = ProductTable(app, files, self._new_search(), self.gauges, self.intake)
        photographs = ProductPictures(app, files, self._new_search(), self.gauges, self.intake)
        self.tables: Kind[TableParams, RowInput, None] = app.kinds.add(Kind.of(TABLE, rows, policy))
        self.pictures: Kind[ArchiveParams | PictureParams, PictureInput, None] = app.kinds.add(
            Kind.of(PICTURES, photographs, policy)
        )

    def gauges(self) -> dict[str, dict[str, dict[str, float]]]:
        """How the retailers treat us: the share of calls each refuses, and how far apart calls to it are."""
        return {"providers": {retailer.name: retailer.gauges for retailer in self._retailers}}

    def _new_search(self) -> ProductSearch:
        return ProductSearch(Providers(self._retailers), BatchWriter(self.repository.add))
