"""Products as their users know them: hand in a table or pictures, and find each product at a retailer."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from penstock import (
    ItemContext,
    JobContext,
    Penstock,
    Planned,
    TableShape,
    open_table,
    table_limits,
)
from penstock.ingest import SourceSettings
from penstock.settings import read_settings
from penstock_apps.products import kinds
from penstock_apps.products.http_json import load_providers
from penstock_apps.products.intake import ProductIntake
from penstock_apps.products.providers import Providers
from penstock_apps.products.repository import BatchWriter, SearchEventRepository
from penstock_apps.products.settings import ProductSettings

TABLE = "csv"
PICTURES = "image"
_BACKOFF = "1s exponential up to 5m"


class Products:
    """The products application on one Penstock."""

    def __init__(self, app: Penstock, settings: ProductSettings, *, backoff: str = _BACKOFF) -> None:
        self._app = app
        self.settings = settings
        self.repository = SearchEventRepository(app)
        self.intake = ProductIntake(app, read_settings(SourceSettings))
        # What is wrong with them is said before the first row.
        self._retailers = load_providers(settings.providers, os.environ)
        for name, definition in ((TABLE, self._of_tables()), (PICTURES, self._of_pictures())):
            app.kind(
                name,
                retries=settings.max_attempts_error - 1,
                not_found_retries=settings.max_attempts_not_found - 1,
                backoff=backoff,
                reprocess=True,
            )(definition)

    def gauges(self) -> dict[str, Any]:
        """How the retailers treat us: the share of calls each refuses, and how far apart calls to it are."""
        return {"providers": {retailer.name: retailer.gauges for retailer in self._retailers}}

    # The work -----------------------------------------------------------------------------------------------------

    def _searching(self) -> kinds.Searching:
        return kinds.Searching(Providers(self._retailers), BatchWriter(self.repository.add))

    def _of_tables(self) -> type:
        app, path_of, searching = self._app, self._kept, self._searching()
        read_gauges, taking = self.gauges, self.intake

        class Rows:
            """Each row of a table, looked up."""

            columns = kinds.COLUMNS
            summary = kinds.SUMMARY
            gauges = staticmethod(read_gauges)
            intake = taking

            def plan(self, job: JobContext, after: int) -> Iterator[Planned]:
                params: Any = job.params
                table = open_table(path_of(job), TableShape.from_json(params["shape"]), table_limits(app.settings))
                yield from kinds.planned_rows(table, params["mapping"], after)

            async def process(self, item: ItemContext) -> dict[str, Any]:
                return await searching.of_row(item)

        return Rows

    def _of_pictures(self) -> type:
        path_of, keep, searching, limits = self._kept, self._keep, self._searching(), self.intake.archive_limits
        read_gauges, taking = self.gauges, self.intake

        class Photographs:
            """Each picture's barcode, looked up."""

            columns = kinds.COLUMNS
            summary = kinds.SUMMARY
            gauges = staticmethod(read_gauges)
            intake = taking

            def plan(self, job: JobContext, after: int) -> Iterator[Planned]:
                params: Any = job.params
                if "archive" in params:
                    yield from kinds.planned_members(path_of(job), limits(), partial(keep, job), after)
                else:
                    yield from kinds.planned_pictures(params["pictures"], after)

            async def process(self, item: ItemContext) -> dict[str, Any]:
                return await searching.of_picture(item)

        return Photographs

    def _kept(self, job: JobContext) -> Path:
        params: Any = job.params
        return self._app.file(UUID(params["file_id"]))[1]

    def _keep(self, job: JobContext, number: int, picture: bytes) -> str:
        """Put a picture of an archive by; the name it has in there may be no name for a file, and is the item's."""
        params: Any = job.params
        name = f"{number} of {params['name'][:1000]}"
        return self._app.keep_file(io.BytesIO(picture), name=name, owner=job.owner).sha256
