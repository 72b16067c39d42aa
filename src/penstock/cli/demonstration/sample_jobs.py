"""The jobs of the demonstration: documents, photos, recipes, products, lines counted, a slow one stopped half way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

from penstock import JobState, owner
from penstock.cli.demonstration import kinds
from penstock.cli.demonstration.visitor import Visitor
from penstock.cli.documents import document_row
from penstock.cli.scoreboard import Row
from penstock.cli.texts import counted

if TYPE_CHECKING:
    from uuid import UUID

    from penstock import Job, Penstock

USER = "demo"
REASON = "half was enough"
CATALOG = "Samples"


@dataclass(frozen=True, slots=True)
class Act:
    """A job of the demonstration, and how it must end for that to be a success."""

    row: Row
    state: JobState
    error_code: str | None = None
    counts: tuple[int, int, int] | None = None
    """Items that must be done, not found and failed, where that is known."""

    def went_well(self, job: Job) -> bool:
        """Did it end as it should?"""
        counts = (job.progress.done, job.progress.not_found, job.progress.failed)
        return (job.state, job.error_code) == (self.state, self.error_code) and self.counts in (None, counts)


class SampleJobs:
    """Submitted one after the other: what is done with photos has to wait until they are found."""

    def __init__(
        self, app: Penstock, directory: Path, site: str | None, visitor: Visitor, *, shop_is_ours: bool
    ) -> None:
        self._app = app
        self._site = site
        self._shop_is_ours = shop_is_ours
        self._directory = directory
        self._visitor = visitor
        self._slow: UUID | None = None
        self._scan: UUID | None = None
        self._catalog: UUID | None = None
        self.acts: list[Act] = []
        self.rows: list[Row] = []

    def submit(self) -> None:
        """Make the samples, and a job of each."""
        from penstock_apps import missing_libraries

        missing = missing_libraries()
        for name, extra in missing.items():
            print(f"left out: {name}; it needs {extra}\n", flush=True)
        if "documents" not in missing:
            self._read_documents(self._directory / "documents")
        if "catalogs" not in missing:
            self._scan_photos(self._directory / "photos")
        if self._site is not None:
            self._parse_recipes(self._site)
        if "products" not in missing:
            self._look_up_products(self._directory / "products")
        self._count()

    def look(self, jobs: Sequence[Job]) -> None:
        """Stop the slow one half way, and go on with the photos once they are found."""
        for job in jobs:
            if job.id == self._slow and job.state is JobState.RUNNING and job.progress.fraction(job.state) >= 0.5:
                self._slow = None
                self._stop(job.id)
            if job.id == self._scan and job.finished:
                self._scan = None
                for action in ("thumbnails", "detect-duplicates", "tag"):
                    self._start(action)

    def _add(
        self,
        row: Row,
        state: JobState = JobState.SUCCEEDED,
        error_code: str | None = None,
        counts: tuple[int, int, int] | None = None,
    ) -> None:
        self.acts.append(Act(row, state, error_code, counts))
        self.rows.append(row)

    def _read_documents(self, folder: Path) -> None:
        """Four documents that are read, and three that are refused, each for its reason."""
        from penstock_apps.documents.samples import write_broken_samples, write_samples

        good, broken = write_samples(folder), write_broken_samples(folder)
        codes = dict(zip(broken, ("DOCUMENT_CORRUPT", "DOCUMENT_MISLABELLED", "DOCUMENT_EMPTY"), strict=True))
        for path in (*good, *broken):
            state = JobState.FAILED if path in codes else JobState.SUCCEEDED
            self._add(document_row(self._visitor.hand_in(path), path.name), state, codes.get(path))

    def _parse_recipes(self, site: str) -> None:
        """Two pages with a recipe, and one without."""
        from penstock_apps.recipes.samples import PAGES, WITHOUT_RECIPE

        for path in PAGES:
            row = Row(self._visitor.parse(f"http://{site}{path}"), f"recipe: {path}", tell=_tell_recipe)
            if path == WITHOUT_RECIPE:
                self._add(row, JobState.FAILED, "NOT_A_RECIPE")
            else:
                self._add(row)

    def _look_up_products(self, folder: Path) -> None:
        """A table whose rows go three ways, and two pictures of barcodes."""
        from penstock_apps.products.samples import ROWS_AS_THEY_END, write_samples

        table, pictures = write_samples(folder)
        if not self._shop_is_ours:
            print("left out: products; PRODUCT_PROVIDERS names your own retailers; samples ask none\n", flush=True)
        elif not self._app.settings.db_ingest_enabled:
            print("left out: products; DB_INGEST_ENABLED is off, so nothing can be uploaded\n", flush=True)
        else:
            self._add(Row(self._visitor.look_up(table), f"products: {table.name}"), counts=ROWS_AS_THEY_END)
            found = (len(pictures), 0, 0)
            self._add(Row(self._visitor.look_up(*pictures), f"products: {len(pictures)} pictures"), counts=found)

    def _scan_photos(self, folder: Path) -> None:
        from penstock_apps.catalogs.samples import write_samples

        write_samples(folder)
        self._catalog = self._visitor.catalog(CATALOG, folder)
        self._scan = self._start("scan")

    def _start(self, action: str) -> UUID:
        assert self._catalog is not None
        job = self._visitor.start(self._catalog, action)
        self._add(Row(job, f"photos: {action}", tell=_tell_photos))
        return job

    def _count(self) -> None:
        """The demonstration's own kinds have no address to be submitted at; a program does it like this."""
        counting = self._app.acting_as(owner(USER)).submit(kinds.COUNT_WORDS, {"lines": kinds.LINES}).job
        self._add(Row(counting.id, kinds.COUNT_WORDS))
        slow = self._app.acting_as(owner(USER)).submit(kinds.SLOW_COUNT, items=range(1, kinds.SLOW_ITEMS + 1)).job
        self._slow = slow.id
        self._add(Row(slow.id, kinds.SLOW_COUNT), JobState.CANCELED)

    def _stop(self, job: UUID) -> None:
        try:
            self._visitor.stop(job, REASON)
        except HTTPError as error:
            if error.code != 409:  # it ended in this very moment; the summary will say so
                raise


def _tell_photos(result: Any) -> str:
    """What came of a job over photos, in a few words."""
    if not isinstance(result, dict):
        return ""
    parts = []
    if "groups" in result:
        parts.append(f"{counted(result['groups'], 'group')} with {result['copies']} copies")
    else:
        parts.append(f"{result.get('processed', 0):,} done")
    if result.get("errors"):
        parts.append(f"{result['errors']:,} could not be read")
    return ", ".join(parts)


def _tell_recipe(result: Any) -> str:
    """What was found on a page, in a few words."""
    if not isinstance(result, dict) or not isinstance(result.get("recipe"), dict):
        return ""
    recipe = result["recipe"]
    parts = (counted(len(recipe["ingredients"]), "ingredient"), counted(len(recipe["steps"]), "step"))
    return f"{recipe['title']}: {', '.join(parts)}"
