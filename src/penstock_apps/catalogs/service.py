"""Catalogs as their users know them: name some folders, then scan them, make thumbnails, find copies, tag."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar
from uuid import UUID, uuid4

from penstock import SYSTEM, Caller, Job, Kind, Penstock, Policy
from penstock.errors import FileNotFound, InvalidInput
from penstock.lifecycle import JSON
from penstock.store import DatabaseConnection
from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.folders import require_below_roots
from penstock_apps.catalogs.handlers import thumbnail_path
from penstock_apps.catalogs.kinds import Duplicates, Scan, Tagging, Thumbnails
from penstock_apps.catalogs.payloads import (
    CatalogParams,
    CatalogResult,
    CompareInput,
    DuplicateParams,
    DuplicateResult,
    ScanInput,
    ScanResult,
    TagInput,
    ThumbnailInput,
    ThumbnailParams,
)
from penstock_apps.catalogs.repository import Catalog, CatalogRepository
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
Params = TypeVar("Params", bound=CatalogParams)


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
        kinds = app.kinds
        self.scan: Kind[CatalogParams, ScanInput, ScanResult] = kinds.add(
            Kind.of("scan", Scan(app, repository, max_per_job), _POLICY)
        )
        self.thumbnails: Kind[ThumbnailParams, ThumbnailInput, CatalogResult] = kinds.add(
            Kind.of("thumbnails", Thumbnails(app, repository, max_per_job), _POLICY)
        )
        self.duplicates: Kind[DuplicateParams, CompareInput, DuplicateResult] = kinds.add(
            Kind.of("duplicates", Duplicates(app, repository, max_per_job), _POLICY)
        )
        self.tagging: Kind[CatalogParams, TagInput, CatalogResult] = kinds.add(
            Kind.of("tagging", Tagging(app, repository, max_per_job), _POLICY)
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

    def thumbnail(self, catalog_id: UUID, key: str, edge: int, *, by: Caller) -> Path:
        """A photo's thumbnail, if it has been made."""
        photo = self.repository.photo(self.get(catalog_id, by=by).id, key)
        path = thumbnail_path(self.thumbnails_directory, photo.sha256, edge)
        if not path.is_file():
            raise FileNotFound(f"there is no thumbnail of {edge} pixels yet", code="THUMBNAIL_NOT_MADE")
        return path

    # Jobs over a catalog; while one runs, asking again is answered with the same job ------------------------------

    def start_scan(self, catalog_id: UUID, *, by: Caller, idempotency_key: str | None = None) -> Job:
        """Find new, changed and removed photos."""
        catalog = self.get(catalog_id, by=by)
        return self._start(self.scan, catalog, _params(catalog), {}, by=by, idempotency_key=idempotency_key)

    def start_thumbnails(
        self,
        catalog_id: UUID,
        sizes: list[int] | None = None,
        quality: int | None = None,
        *,
        by: Caller,
        idempotency_key: str | None = None,
    ) -> Job:
        """Make the thumbnails that are not there yet."""
        edges = sorted(set(sizes or _DEFAULT_SIZES))
        if any(not 16 <= edge <= _LARGEST_EDGE for edge in edges) or len(edges) > 8:
            raise InvalidInput(f"sizes are up to 8 numbers from 16 to {_LARGEST_EDGE}", field="sizes")
        catalog = self.get(catalog_id, by=by)
        params: ThumbnailParams = {
            **_params(catalog),
            "sizes": edges,
            "quality": quality or _DEFAULT_QUALITY,
            "directory": str(self.thumbnails_directory),
        }
        options = {"sizes": params["sizes"], "quality": params["quality"]}
        return self._start(self.thumbnails, catalog, params, options, by=by, idempotency_key=idempotency_key)

    def start_duplicates(
        self, catalog_id: UUID, distance: int, *, by: Caller, idempotency_key: str | None = None
    ) -> Job:
        """Find copies, and photos that look nearly the same."""
        catalog = self.get(catalog_id, by=by)
        params: DuplicateParams = {**_params(catalog), "distance": distance}
        options = {"distance": distance}
        return self._start(self.duplicates, catalog, params, options, by=by, idempotency_key=idempotency_key)

    def start_tagging(self, catalog_id: UUID, *, by: Caller, idempotency_key: str | None = None) -> Job:
        """Tag every photo."""
        catalog = self.get(catalog_id, by=by)
        return self._start(self.tagging, catalog, _params(catalog), {}, by=by, idempotency_key=idempotency_key)

    def _start(
        self,
        kind: Kind[Params, JSON, JSON],
        catalog: Catalog,
        params: Params,
        options: dict[str, JSON],
        *,
        by: Caller,
        idempotency_key: str | None,
    ) -> Job:
        submission = self._app.acting_as(by).submit(
            kind,
            params,
            owner=catalog.user_id,
            unique_key=str(catalog.id),
            idempotency_key=idempotency_key,
            # Of the params only what was asked for: bounds and folders are settings, which a deployment may change.
            fingerprint=[kind.name, str(catalog.id), options],
            title=catalog.name,
        )
        return submission.job


def _params(catalog: Catalog) -> CatalogParams:
    bounds = Bounds()
    return {
        "catalog_id": str(catalog.id),
        "directories": list(catalog.source_directories),
        "bounds": {"max_bytes": bounds.max_bytes, "max_pixels": bounds.max_pixels},
    }
