"""Catalogs as their users know them: name some folders, then scan them, make thumbnails, find copies, tag."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from penstock import SYSTEM, Caller, Job, Kind, Penstock, Policy
from penstock.errors import FileNotFound, InvalidInput, TransitionRefused
from penstock.store import DatabaseConnection
from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.catalog_jobs import CatalogJobs
from penstock_apps.catalogs.folders import require_below_roots
from penstock_apps.catalogs.handlers import THUMBNAILS_VERSION, thumbnail_path
from penstock_apps.catalogs.kinds import Duplicates, Tagging, Thumbnails
from penstock_apps.catalogs.payloads import (
    CatalogParams,
    CatalogResult,
    CompareInput,
    DuplicateParams,
    DuplicateResult,
    ScanInput,
    ScanParams,
    ScanResult,
    TagInput,
    ThumbnailInput,
    ThumbnailParams,
)
from penstock_apps.catalogs.photo_repository import PhotoRepository
from penstock_apps.catalogs.repository import Catalog, CatalogRepository
from penstock_apps.catalogs.scanning import Scan
from penstock_apps.catalogs.settings import CatalogSettings
from penstock_apps.catalogs.tags import load_taggers

_DEFAULT_SIZES = (128, 512)
_DEFAULT_QUALITY = 80
_LARGEST_EDGE = 4096
_THUMBNAILS = "penstock-thumbnails"
_MAX_PER_JOB = 100_000
_POLICY = Policy(
    retries=2,
    backoff="1s exponential up to 1m",
    runs_in="processes",
    timeout=120.0,
    memory_limit=2 * 1024**3,
)


@dataclass(frozen=True, slots=True)
class ThumbnailFile:
    """A thumbnail that has been made."""

    path: Path
    etag: str
    """It changes with the photo's content."""


class Catalogs:
    """The catalogs application on one Penstock."""

    def __init__(self, app: Penstock, settings: CatalogSettings, *, max_per_job: int = _MAX_PER_JOB) -> None:
        load_taggers(settings.taggers)  # what is wrong with them is said before the first photo
        self._app = app
        self.settings = settings
        self.thumbnails_directory = (
            settings.thumbnails_directory or app.settings.files_directory.parent / _THUMBNAILS
        ).absolute()
        self.repository = repository = CatalogRepository(app)
        self.photos = photos = PhotoRepository(app)
        self._jobs = jobs = CatalogJobs(app, repository)
        kinds, share = app.kinds, settings.removed_share
        self.scan: Kind[ScanParams, ScanInput, ScanResult] = kinds.add(
            Kind.of(Scan.name, Scan(app, jobs, repository, photos, max_per_job, share), _POLICY)
        )
        self.thumbnails: Kind[ThumbnailParams, ThumbnailInput, CatalogResult] = kinds.add(
            Kind.of(Thumbnails.name, Thumbnails(app, jobs, photos, max_per_job), _POLICY)
        )
        self.duplicates: Kind[DuplicateParams, CompareInput, DuplicateResult] = kinds.add(
            Kind.of(Duplicates.name, Duplicates(app, jobs, photos, max_per_job), _POLICY)
        )
        self.tagging: Kind[CatalogParams, TagInput, CatalogResult] = kinds.add(
            Kind.of(Tagging.name, Tagging(app, jobs, photos, max_per_job), _POLICY)
        )

    # Catalogs -----------------------------------------------------------------------------------------------------

    def create(
        self, name: str, source_directories: list[str], *, user: str | None, idempotency_key: str | None = None
    ) -> Catalog:
        """Record a catalog of folders below the allowed roots; the same request again gives the same catalog."""
        folders = require_below_roots(source_directories, self.settings.roots)
        fingerprint = ["catalog", name, source_directories]

        def operation(connection: DatabaseConnection) -> UUID:
            catalog_id = uuid4()
            if idempotency_key is not None:
                earlier = self._app.acting_as(SYSTEM).take_key(
                    idempotency_key, fingerprint, owner=user, resource_id=catalog_id, connection=connection
                )
                if earlier is not None:
                    return earlier
            self.repository.create(connection, catalog_id, name, folders, user=user)
            return catalog_id

        return self.repository.get(self._app.in_transaction(operation), by=SYSTEM)

    def get(self, catalog_id: UUID, *, by: Caller) -> Catalog:
        """A catalog of the caller's."""
        return self.repository.get(catalog_id, by=by)

    def change(
        self, catalog_id: UUID, *, name: str | None, source_directories: list[str] | None, by: Caller
    ) -> Catalog:
        """Give a catalog another name, or other folders; what is None stays as it is.

        The next scan forgets the photos that are in none of its folders any more.
        """
        folders = None
        if source_directories is not None:
            self.get(catalog_id, by=by)  # whether a folder is there is told to nobody else
            folders = require_below_roots(source_directories, self.settings.roots)

        def operation(connection: DatabaseConnection) -> Catalog:
            before = self.repository.lock(connection, catalog_id, by=by)
            others = None if folders == before.source_directories else folders  # the same ones were scanned already
            self.repository.change(connection, catalog_id, name, others)
            return self.repository.lock(connection, catalog_id, by=by)

        return self._app.in_transaction(operation)

    def remove(self, catalog_id: UUID, *, by: Caller) -> None:
        """Forget a catalog with its photos, and stop what is done to it; the files stay as they are."""

        def operation(connection: DatabaseConnection) -> None:
            catalog = self.repository.lock(connection, catalog_id, by=by)
            self._jobs.cancel_all(connection, catalog.id, by=by, reason="the catalog was deleted")
            self.repository.remove(connection, catalog.id)

        self._app.in_transaction(operation)

    def thumbnail(self, catalog_id: UUID, key: str, edge: int, *, by: Caller) -> ThumbnailFile:
        """A photo's thumbnail, if it has been made."""
        photo = self.photos.get(self.get(catalog_id, by=by).id, key)
        path = thumbnail_path(self.thumbnails_directory, photo.sha256, edge)
        try:
            made_at = path.stat().st_mtime_ns
        except OSError:
            raise FileNotFound(f"there is no thumbnail of {edge} pixels yet", code="THUMBNAIL_NOT_MADE") from None
        return ThumbnailFile(path, f'"{THUMBNAILS_VERSION}-{edge}-{photo.sha256}-{made_at:x}"')

    # Jobs over a catalog; while one runs, asking for the same again is answered with it ---------------------------

    def start_scan(
        self, catalog_id: UUID, max_removed: int | None = None, *, by: Caller, idempotency_key: str | None = None
    ) -> Job:
        """Find new, changed and removed photos; ``max_removed`` is how many may be forgotten without asking."""

        def params_of(catalog: Catalog) -> ScanParams:
            return {**_params(catalog), "max_removed": max_removed}

        def require_heard(job: Job) -> None:
            if max_removed is not None and job.params.get("max_removed") != max_removed:
                raise TransitionRefused(
                    f"job {job.id} scans this catalog already and does not know of max_removed: "
                    "say it again when it has ended",
                    code="CATALOG_JOB_RUNS",
                )

        return self._jobs.start(
            self.scan, catalog_id, [], params_of, by=by, idempotency_key=idempotency_key,
            fingerprint={} if max_removed is None else {"max_removed": max_removed}, accept=require_heard,
        )  # fmt: skip

    def start_thumbnails(
        self,
        catalog_id: UUID,
        sizes: list[int] | None = None,
        quality: int | None = None,
        *,
        by: Caller,
        idempotency_key: str | None = None,
    ) -> Job:
        """Make the thumbnails that are not there yet; other sizes are another job."""
        edges = sorted(set(sizes or _DEFAULT_SIZES))
        if any(not 16 <= edge <= _LARGEST_EDGE for edge in edges) or len(edges) > 8:
            raise InvalidInput(f"sizes are up to 8 numbers from 16 to {_LARGEST_EDGE}", field="sizes")
        chosen_quality = quality or _DEFAULT_QUALITY

        def params_of(catalog: Catalog) -> ThumbnailParams:
            return {
                **_params(catalog),
                "sizes": edges,
                "quality": chosen_quality,
                "directory": str(self.thumbnails_directory),
            }

        return self._jobs.start(
            self.thumbnails, catalog_id, [edges, chosen_quality], params_of, by=by, idempotency_key=idempotency_key,
            fingerprint={"sizes": edges, "quality": chosen_quality},
        )  # fmt: skip

    def start_duplicates(
        self, catalog_id: UUID, distance: int, *, by: Caller, idempotency_key: str | None = None
    ) -> Job:
        """Find copies, and photos that look nearly the same; another distance is another job."""

        def params_of(catalog: Catalog) -> DuplicateParams:
            return {**_params(catalog), "distance": distance}

        return self._jobs.start(
            self.duplicates, catalog_id, [distance], params_of, by=by, idempotency_key=idempotency_key,
            fingerprint={"distance": distance},
        )  # fmt: skip

    def start_tagging(self, catalog_id: UUID, *, by: Caller, idempotency_key: str | None = None) -> Job:
        """Tag every photo."""
        return self._jobs.start(
            self.tagging, catalog_id, [], _params, by=by, idempotency_key=idempotency_key, fingerprint={}
        )


def _params(catalog: Catalog) -> CatalogParams:
    bounds = Bounds()
    return {
        "catalog_id": str(catalog.id),
        "directories": list(catalog.source_directories),
        "bounds": {"max_bytes": bounds.max_bytes, "max_pixels": bounds.max_pixels},
    }
