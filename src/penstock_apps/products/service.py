"""Products as their users know them: hand in a table or pictures, and find each product at a retailer."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from penstock import SYSTEM, ItemContext, JobContext, Penstock, Planned
from penstock.errors import ConfigurationError
from penstock.ingest import TableShape, open_table, table_limits
from penstock_apps.products import steps
from penstock_apps.products.http_json import providers_from
from penstock_apps.products.intake import Intake
from penstock_apps.products.providers import Providers
from penstock_apps.products.records import BatchWriter, Records

HEAD = "0001"
TABLE = "csv"
PICTURES = "image"


@dataclass(frozen=True, slots=True)
class ProductSettings:
    """How often a product is looked up before it is given up."""

    max_attempts_error: int = 3
    max_attempts_not_found: int = 2
    backoff: str = "1s exponential up to 5m"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ProductSettings:
        """Read ``MAX_ATTEMPTS_ERROR`` and ``MAX_ATTEMPTS_NOT_FOUND``."""
        defaults = cls()

        def number(name: str, default: int) -> int:
            text = environment.get(name, str(default)).strip()
            value = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
            if not 1 <= value <= 100:
                raise ConfigurationError(f"{name} is {text!r}; it must be a whole number from 1 to 100")
            return value

        return cls(
            max_attempts_error=number("MAX_ATTEMPTS_ERROR", defaults.max_attempts_error),
            max_attempts_not_found=number("MAX_ATTEMPTS_NOT_FOUND", defaults.max_attempts_not_found),
        )


class Products:
    """The products application on one Penstock."""

    def __init__(
        self, app: Penstock, settings: ProductSettings | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        environment = os.environ if environment is None else environment
        app.add_migrations("products", "penstock_apps.products", HEAD)
        self._app = app
        self.settings = ProductSettings.from_environment(environment) if settings is None else settings
        self.records = Records(app)
        self.intake = Intake(app, environment)
        self._retailers = providers_from(environment)  # what is wrong with them is said before the first row
        for name, definition in ((TABLE, self._of_tables()), (PICTURES, self._of_pictures())):
            app.kind(
                name,
                retries=self.settings.max_attempts_error - 1,
                not_found_retries=self.settings.max_attempts_not_found - 1,
                backoff=self.settings.backoff,
                reprocess=True,
            )(definition)
            app.gauges(name, self.gauges)

    def gauges(self) -> dict[str, Any]:
        """How the retailers treat us: the share of calls each refuses, and how far apart calls to it are."""
        return {"providers": {one.name: one.gauges for one in self._retailers}}

    # The work -----------------------------------------------------------------------------------------------------

    def _searching(self) -> steps.Searching:
        return steps.Searching(Providers(self._retailers), BatchWriter(self.records.add))

    def _of_tables(self) -> type:
        app, path_of, searching = self._app, self._kept, self._searching()

        class Rows:
            """Each row of a table, looked up."""

            columns = steps.COLUMNS

            def plan(self, job: JobContext, after: int) -> Iterator[Planned]:
                params: Any = job.params
                table = open_table(path_of(job), TableShape.from_json(params["shape"]), table_limits(app.settings))
                yield from steps.planned_rows(table, params["mapping"], after)

            async def process(self, item: ItemContext) -> dict[str, Any]:
                return await searching.of_row(item)

        return Rows

    def _of_pictures(self) -> type:
        path_of, keep, searching, limits = self._kept, self._keep, self._searching(), self.intake.archive_limits

        class Photographs:
            """Each picture's barcode, looked up."""

            columns = steps.COLUMNS

            def plan(self, job: JobContext, after: int) -> Iterator[Planned]:
                params: Any = job.params
                if "archive" in params:
                    yield from steps.planned_members(path_of(job), limits(), partial(keep, job), after)
                else:
                    yield from steps.planned_pictures(params["pictures"], after)

            async def process(self, item: ItemContext) -> dict[str, Any]:
                return await searching.of_picture(item)

        return Photographs

    def _kept(self, job: JobContext) -> Path:
        params: Any = job.params
        return self._app.acting_as(SYSTEM).files.path(UUID(params["file_id"]))

    def _keep(self, job: JobContext, number: int, picture: bytes) -> str:
        """Put a picture of an archive by; the name it has in there may be no name for a file, and is the item's."""
        params: Any = job.params
        name = f"{number} of {params['name'][:1000]}"
        return self._app.acting_as(SYSTEM).files.keep(io.BytesIO(picture), name=name, owner=job.owner).sha256
