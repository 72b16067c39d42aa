"""The scan of a catalog: what is new, changed or gone, and what each photo says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from uuid import UUID

from penstock import SYSTEM, ItemStatus, JobContext, Penstock
from penstock.lifecycle import storable_text
from penstock.store import DatabaseConnection
from penstock_apps.catalogs.catalog_jobs import CatalogJobs
from penstock_apps.catalogs.failures import FINAL_CODES
from penstock_apps.catalogs.folders import PhotoFile, Walk, require_a_folder
from penstock_apps.catalogs.handlers import scan_photo
from penstock_apps.catalogs.kinds import CatalogKind, hand_on, summarize
from penstock_apps.catalogs.payloads import LastScan, PhotoFacts, ScanInput, ScanParams, ScanResult
from penstock_apps.catalogs.photo_paths import is_below, path_data, path_in, path_key
from penstock_apps.catalogs.photo_repository import Guard, PhotoRepository, UnreadablePhoto
from penstock_apps.catalogs.removals import decide_removal
from penstock_apps.catalogs.repository import CatalogRepository

_MAX_FOLDERS = 20
"""So many of the folders that could not be read are named."""


class Scan(CatalogKind):
    """Finds new, changed and removed photos, and keeps what they say of themselves."""

    name = "scan"
    process = staticmethod(scan_photo)

    def __init__(
        self,
        app: Penstock,
        jobs: CatalogJobs,
        catalogs: CatalogRepository,
        photos: PhotoRepository,
        max_per_job: int,
        removed_share: float,
    ) -> None:
        super().__init__(app, jobs, photos, max_per_job)
        self._catalogs = catalogs
        self._removed_share = removed_share

    def plan(self, job: JobContext[ScanParams, PhotoFacts]) -> Iterator[ScanInput]:
        """Each file that the last scan did not see as it is now, and each that could not be read."""
        catalog_id, directories = self._begin(job), job.params["directories"]
        require_a_folder(directories)
        known_versions = {photo.path: (photo.size, photo.modified) for photo in self._photos.all(catalog_id)}
        done_before = self._photos.unreadable_in(catalog_id, _first_job(job))
        unreadable = {photo.path for photo in self._unreadable(catalog_id)}

        def is_to_be_read(file: PhotoFile) -> bool:
            job.check()
            if path_key(file.path) in done_before:
                return False  # a part of this scan before this one could not read it
            return known_versions.get(file.path) != (file.size, file.modified) or file.path in unreadable

        for file in islice(filter(is_to_be_read, Walk(directories).files()), self._max_per_job):
            yield {**path_data(file.path), "is_known": file.path in known_versions}

    def finalize(self, job: JobContext[ScanParams, PhotoFacts]) -> ScanResult:
        """Keep the facts, and what could not be read, and forget the photos that are gone."""
        catalog_id, guard = self._end(job)
        # Somebody may have given the catalog other folders since the job was started.
        directories = self._catalogs.get(catalog_id, by=SYSTEM).source_directories
        require_a_folder(directories)
        known_paths = {photo.path for photo in self._photos.all(catalog_id)}
        walk = Walk(directories)
        present = set[str]()
        for file in walk.files():
            job.check()
            present.add(file.path)
        removal = decide_removal(
            known_paths,
            present,
            walk,
            directories,
            share=self._removed_share,
            max_removed=job.params.get("max_removed"),
        )

        def is_there(path: str) -> bool:
            return path in present or (walk.misses(path) and any(is_below(path, folder) for folder in directories))

        counts = Counter[str]()
        self._photos.save(catalog_id, _facts(job, is_there, counts), guard)
        self._keep_unreadable(job, catalog_id, _failures(job, is_there, counts), guard)
        result: ScanResult = {
            **summarize(job),
            "new": counts["new"],
            "changed": counts["changed"],
            "removed": self._photos.remove(catalog_id, removal.forget, guard),
            "unchanged": max(0, len(present & known_paths) - counts["changed"] - counts["no longer readable"]),
            "missing": removal.missing,
            "out_of_sight": removal.out_of_sight,
            "unreadable_folders": [storable_text(path) for path in sorted(walk.unreadable)[:_MAX_FOLDERS]],
        }
        if removal.missing or walk.unreadable:
            result["status"] = "completed_with_errors"
        self._remember(job, catalog_id, result, guard)
        if job.progress.total >= self._max_per_job:
            more = {"first_job": str(_first_job(job))}
            return hand_on(result, self._jobs.go_on(catalog_id, self._work(job), job, more))
        return result

    def _keep_unreadable(
        self,
        job: JobContext[ScanParams, PhotoFacts],
        catalog_id: UUID,
        failures: Iterable[UnreadablePhoto],
        guard: Guard,
    ) -> None:
        """Each scan tries what the last one could not read: a library, a right or more memory may be there now.

        So at the end of its last part only what it could not read itself is kept.
        """
        scan_id = _first_job(job)
        with_finality = ((photo, photo.error_code in FINAL_CODES) for photo in failures)
        self._photos.save_unreadable(catalog_id, scan_id, with_finality, guard)
        if job.progress.total < self._max_per_job:
            self._photos.forget_unreadable_but(catalog_id, scan_id, guard)

    def _remember(
        self, job: JobContext[ScanParams, PhotoFacts], catalog_id: UUID, result: ScanResult, guard: Guard
    ) -> None:
        def operation(connection: DatabaseConnection) -> None:
            guard(connection)
            photos, unreadable = self._photos.count(connection, catalog_id)
            last_scan: LastScan = {
                "job_id": str(job.id),
                "ended_at": datetime.now(UTC).isoformat(),
                "photos": photos,
                "unreadable": unreadable,
                "missing": result["missing"],
                "out_of_sight": result["out_of_sight"],
                "unreadable_folders": result["unreadable_folders"],
            }
            self._catalogs.remember_scan(connection, catalog_id, last_scan)

        self._app.in_transaction(operation)

    def _unreadable(self, catalog_id: UUID) -> Iterable[UnreadablePhoto]:
        after = ""
        while page := self._photos.unreadable(catalog_id, after=after, limit=500):
            yield from page
            after = path_key(page[-1].path)


def _first_job(job: JobContext[ScanParams, PhotoFacts]) -> UUID:
    """The job that the scan began with."""
    return UUID(job.params["first_job"]) if "first_job" in job.params else job.id


def _facts(
    job: JobContext[ScanParams, PhotoFacts], is_there: Callable[[str], bool], counts: Counter[str]
) -> Iterator[tuple[str, PhotoFacts]]:
    """The photos that were read and are still there, and what they say; counted as they are handed out."""
    for item in job.items(ItemStatus.DONE):
        job.check()
        path = path_in(item.input)
        if is_there(path):
            counts["changed" if item.input.get("is_known") else "new"] += 1
            yield path, item.result


def _failures(
    job: JobContext[ScanParams, PhotoFacts], is_there: Callable[[str], bool], counts: Counter[str]
) -> Iterator[UnreadablePhoto]:
    """The photos that could not be read and are still there."""
    for item in job.items(ItemStatus.ERROR):
        job.check()
        path = path_in(item.input)
        if is_there(path):
            counts["no longer readable"] += item.input.get("is_known", False)
            yield UnreadablePhoto(path, item.error_code, item.last_error)
