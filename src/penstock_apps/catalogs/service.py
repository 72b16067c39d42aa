"""Catalogs as their users know them: name some folders, then scan them, make thumbnails, find copies, tag."""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from penstock import (
    SYSTEM,
    Caller,
    FileNotFound,
    InvalidInput,
    ItemStatus,
    Job,
    JobContext,
    JobNotFound,
    Penstock,
    Permanent,
)
from penstock_apps.catalogs import kinds
from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.duplicates import Photo, groups_of
from penstock_apps.catalogs.folders import allowed, require_folders, walk
from penstock_apps.catalogs.repository import Catalog, CatalogRepository
from penstock_apps.catalogs.settings import CatalogSettings
from penstock_apps.catalogs.tags import load_taggers

_DETAILS = 100
_COMPARED_BY_ONE = 50_000
"""Hashes that a process goes through in well under a second; of more, each takes its part."""
_SIZES = (128, 512)
_LARGEST_EDGE = 4096
_THUMBNAILS = "penstock-thumbnails"
_MOST_PER_JOB = 100_000
_TIMEOUT = 120.0
_MEMORY_BYTES = 2 * 1024**3


class Catalogs:
    """The catalogs application on one Penstock."""

    def __init__(self, app: Penstock, settings: CatalogSettings, *, most_per_job: int = _MOST_PER_JOB) -> None:
        load_taggers(settings.taggers)  # what is wrong with them is said before the first photo
        self._app = app
        self.settings = settings
        self.thumbnails_directory = (
            settings.thumbnails_directory or app.settings.files_directory.parent / _THUMBNAILS
        ).absolute()
        self._most_per_job = most_per_job
        self.repository = CatalogRepository(app)
        for name, definition in (
            ("scan", self._scan()),
            ("thumbnails", self._thumbnails()),
            ("duplicates", self._duplicates()),
            ("tagging", self._tagging()),
        ):
            app.kind(
                name,
                retries=2,
                backoff="1s exponential up to 1m",
                runs_in="processes",
                timeout=_TIMEOUT,
                memory_limit=_MEMORY_BYTES,
            )(definition)

    def create(
        self, name: str, source_directories: list[str], *, user: str | None, idempotency_key: str | None = None
    ) -> Catalog:
        """Record a catalog of folders below the allowed roots; the same request again gives the same catalog."""
        folders = allowed(source_directories, self.settings.roots)
        said = ["catalog", name, source_directories]

        def operation(link: Any) -> UUID:
            catalog_id = uuid4()
            if idempotency_key is not None:
                given: dict[str, Any] = {"owner": user, "resource_id": catalog_id, "connection": link}
                earlier = self._app.take_key(idempotency_key, said, **given)
                if earlier is not None:
                    return earlier
            self.repository.create(link, catalog_id, name, folders, user=user)
            return catalog_id

        return self.repository.get(self._app.in_transaction(operation), by=SYSTEM)

    def get(self, catalog_id: UUID, *, by: Caller) -> Catalog:
        """A catalog of the caller's."""
        return self.repository.get(catalog_id, by=by)

    def thumbnail(self, catalog_id: UUID, key: str, edge: int, *, by: Caller) -> Path:
        """A photo's thumbnail, if it has been made."""
        photo = self.repository.photo(self.get(catalog_id, by=by).id, key)
        path = kinds.thumbnail_path(self.thumbnails_directory, photo.sha256, edge)
        if not path.is_file():
            raise FileNotFound(f"there is no thumbnail of {edge} pixels yet", code="THUMBNAIL_NOT_MADE")
        return path

    def start(
        self,
        catalog_id: UUID,
        action: str,
        *,
        by: Caller,
        more: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Let one of the four be done; while it is, asking again is answered with the same job."""
        catalog = self.get(catalog_id, by=by)
        params = {
            "catalog_id": str(catalog.id),
            "directories": list(catalog.source_directories),
            "bounds": asdict(Bounds()),
            **(more or {}),
        }
        return self._app.submit(
            action,
            params,
            owner=catalog.user_id,
            by=by,
            unique_key=str(catalog.id),
            idempotency_key=idempotency_key,
            # The bounds and the folder of thumbnails are settings, which a deployment may change.
            fingerprint=[action, str(catalog.id), {k: v for k, v in (more or {}).items() if k != "directory"}],
            title=catalog.name,
        ).job

    def thumbnail_options(self, sizes: list[int] | None, quality: int | None) -> dict[str, Any]:
        """The params of a job that makes thumbnails."""
        edges = sorted(set(sizes or _SIZES))
        if any(not 16 <= edge <= _LARGEST_EDGE for edge in edges) or len(edges) > 8:
            raise InvalidInput(f"sizes are up to 8 numbers from 16 to {_LARGEST_EDGE}", field="sizes")
        return {"sizes": edges, "quality": quality or 80, "directory": str(self.thumbnails_directory)}

    # The four -----------------------------------------------------------------------------------------------------

    def _scan(self) -> type:
        repository, limit = self.repository, self._most_per_job

        class Scan:
            """Finds new, changed and removed photos, and keeps what they say of themselves."""

            process = staticmethod(kinds.scan)
            describe = staticmethod(kinds.describe)

            def plan(self, job: JobContext) -> Iterator[dict[str, Any]]:
                require_folders(_directories(job))
                known = {one.path: (one.size, one.modified) for one in repository.photos(_existing(repository, job))}
                planned = 0
                for found in walk(_directories(job)):
                    job.check()
                    if known.get(found.path) != (found.size, found.modified):
                        planned += 1
                        yield kinds.scan_input(found.path)
                    if planned >= limit:
                        break

            def finalize(self, job: JobContext) -> dict[str, Any]:
                require_folders(_directories(job))
                catalog = _catalog(job)
                known = {one.path for one in repository.photos(catalog)}
                found = [(str(item.input["path"]), item.result) for item in job.items(ItemStatus.DONE)]
                there = {one.path for one in walk(_directories(job))}
                new = sum(path not in known for path, _ in found)
                saved = repository.save(catalog, found)
                removed = repository.remove(catalog, sorted(known - there))
                return finished(
                    job, new=new, changed=saved - new, removed=removed, unchanged=len(there & known) - saved + new
                )

        return self._with_continuation(Scan)

    def _thumbnails(self) -> type:
        repository, limit = self.repository, self._most_per_job

        class Thumbnails:
            """Makes the thumbnails that are not there yet."""

            process = staticmethod(kinds.thumbnail)
            describe = staticmethod(kinds.describe)

            def plan(self, job: JobContext) -> Iterator[dict[str, Any]]:
                params: Any = job.params
                planned = 0
                for one in repository.photos(_existing(repository, job)):
                    made = (
                        kinds.thumbnail_path(Path(params["directory"]), one.sha256, edge) for edge in params["sizes"]
                    )
                    if not all(path.exists() for path in made):
                        planned += 1
                        yield {"path": one.path, "sha256": one.sha256}
                    if planned >= limit:
                        break

            def finalize(self, job: JobContext) -> dict[str, Any]:
                return finished(job)

        return self._with_continuation(Thumbnails)

    def _duplicates(self) -> type:
        repository, hashes_kept = self.repository, self._hashes_kept

        class Duplicates:
            """Finds copies and near copies: the comparing is divided, the groups are put together at the end."""

            process = staticmethod(kinds.compare)
            describe = staticmethod(kinds.describe)

            def plan(self, job: JobContext) -> Iterator[dict[str, Any]]:
                params: Any = job.params
                hashes, count = hashes_kept(_existing(repository, job))
                parts = 1 + count // _COMPARED_BY_ONE
                for stretch in range(params["distance"] + 1):
                    for part in range(parts):
                        yield {"hashes": hashes, "stretch": stretch, "part": part, "parts": parts}

            def finalize(self, job: JobContext) -> dict[str, Any]:
                catalog = _catalog(job)
                near = ((int(one, 16), int(other, 16)) for pairs in job.results() for one, other in pairs)
                groups = groups_of(_photos(repository, catalog), near=near)
                repository.group(catalog, ((one.path, group.best.sha256) for group in groups for one in group.photos))
                return finished(
                    job,
                    photos=sum(1 for _ in repository.photos(catalog)),
                    groups=len(groups),
                    exact_groups=sum(group.exact for group in groups),
                    copies=sum(len(group.photos) - 1 for group in groups),
                    largest=[
                        {"best": group.best.path, "copies": [one.path for one in group.photos[1:_DETAILS]]}
                        for group in sorted(groups, key=lambda group: -len(group.photos))[:_DETAILS]
                    ],
                )

        return Duplicates

    def _tagging(self) -> type:
        repository = self.repository

        class Tagging:
            """Finds words for every photo."""

            process = staticmethod(kinds.tag)
            describe = staticmethod(kinds.describe)

            def plan(self, job: JobContext) -> Iterator[dict[str, Any]]:
                for one in repository.photos(_existing(repository, job)):
                    yield {"path": one.path, "facts": dict(one.facts)}

            def finalize(self, job: JobContext) -> dict[str, Any]:
                words = ((str(item.input["path"]), item.result) for item in job.items(ItemStatus.DONE))
                repository.tag(_catalog(job), words)
                return finished(job)

        return Tagging

    def _hashes_kept(self, catalog_id: UUID) -> tuple[str, int]:
        """A catalog's hashes in a kept file: its SHA-256, by which a process finds it, and how many there are."""
        packed = array("Q", sorted({one.perceptual_hash for one in self.repository.photos(catalog_id)}))
        kept = self._app.keep_file(io.BytesIO(packed.tobytes()), name="hashes", owner=None)
        return kept.sha256, len(packed)

    def _with_continuation(self, definition: type) -> type:
        """A job that did as much as one may hands what is left to another, and each names the other."""
        app, limit = self._app, self._most_per_job

        class Continued(definition):  # type: ignore[misc]
            def finalize(self, job: JobContext) -> dict[str, Any]:
                result: dict[str, Any] = super().finalize(job)
                if job.progress.total < limit:
                    return result
                params: Any = job.params
                heir = app.submit(
                    job.kind,
                    {**params, "continues": str(job.id)},
                    owner=job.owner,
                    by=SYSTEM,
                    idempotency_key=f"{job.id}:continuation",
                    title=app.get(job.id).title,
                ).job
                return result | {"status": "requeued", "continued_by": str(heir.id)}

        Continued.__name__ = definition.__name__
        return Continued


def finished(job: JobContext, **more: Any) -> dict[str, Any]:
    """What a finalizer returns, in the words people know."""
    failed = job.progress.failed
    result: dict[str, Any] = {
        "status": "completed_with_errors" if failed else "completed",
        "catalog_id": str(_catalog(job)),
        "processed": job.progress.done,
        "errors": failed,
        **more,
    }
    if failed:
        listed = []
        for item in job.items(ItemStatus.ERROR):
            listed.append({"path": item.input["path"], "error": item.last_error, "error_code": item.error_code})
            if len(listed) == _DETAILS:
                break
        result["error_details"] = listed
    return result


def _catalog(job: JobContext) -> UUID:
    params: Any = job.params
    return UUID(params["catalog_id"])


def _existing(repository: CatalogRepository, job: JobContext) -> UUID:
    """The catalog of a job that begins; where somebody has removed it meanwhile, the job fails for good."""
    try:
        return repository.get(_catalog(job), by=SYSTEM).id
    except JobNotFound as error:
        raise Permanent(error.message, code=error.code) from None


def _directories(job: JobContext) -> list[str]:
    params: Any = job.params
    directories: list[str] = params["directories"]
    return directories


def _photos(repository: CatalogRepository, catalog: UUID) -> Iterator[Photo]:
    for one in repository.photos(catalog):
        pixels = int(one.facts["width"]) * int(one.facts["height"])
        yield Photo(one.path, one.sha256, one.perceptual_hash, pixels, one.size, one.facts.get("taken_at"))
