"""The four kinds of jobs over a catalog: scan it, make thumbnails, find copies, tag.

Each plans its items from what is kept of the catalog, and keeps what they found when it is finalized. What is done to
one photo is in ``handlers``.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from penstock import SYSTEM, ItemStatus, JobContext, Penstock, Permanent
from penstock.errors import JobNotFound
from penstock.lifecycle import JSON, storable_text
from penstock_apps.catalogs.duplicates import Photo, groups_of
from penstock_apps.catalogs.folders import require_folders, walk
from penstock_apps.catalogs.handlers import compare_hashes, make_thumbnails, scan_photo, tag_photo, thumbnail_path
from penstock_apps.catalogs.payloads import (
    CatalogParams,
    CatalogResult,
    CompareInput,
    DuplicateParams,
    DuplicateResult,
    PhotoError,
    PhotoFacts,
    ScanInput,
    ScanResult,
    TagInput,
    ThumbnailData,
    ThumbnailInput,
    ThumbnailParams,
)
from penstock_apps.catalogs.repository import CatalogRepository
from penstock_apps.plurals import pluralize

_MAX_DETAILS = 100
_HASHES_OF_A_PART = 50_000
"""Hashes that a process goes through in well under a second; of more, each takes its part."""
Params = TypeVar("Params", bound=CatalogParams)
Result = TypeVar("Result", bound=CatalogResult)


def describe(result: JSON) -> str:
    """What came of a job over photos, in a few words."""
    if not isinstance(result, dict):
        return ""
    if "groups" in result:
        first = f"{pluralize(result['groups'], 'group')} with {result['copies']} copies"
    else:
        first = f"{result.get('processed', 0):,} done"
    errors = result.get("errors")
    return f"{first}, {errors:,} could not be read" if errors else first


class CatalogKind:
    """What the four share."""

    describe = staticmethod(describe)

    def __init__(self, app: Penstock, repository: CatalogRepository, max_per_job: int) -> None:
        self._app = app
        self._repository = repository
        self._max_per_job = max_per_job

    def _require_catalog(self, params: CatalogParams) -> UUID:
        """The catalog of a job that begins or ends; where somebody has removed it meanwhile, the job fails for good."""
        try:
            return self._repository.get(UUID(params["catalog_id"]), by=SYSTEM).id
        except JobNotFound as error:
            raise Permanent(error.message, code=error.code) from None

    def _continue(self, job: JobContext[Params, JSON], result: Result) -> Result:
        """A job that did as much as one may hands the rest to another, and each names the other."""
        if job.progress.total < self._max_per_job:
            return result
        as_system = self._app.acting_as(SYSTEM)
        submission = as_system.submit(
            job.kind,
            {**job.params, "continues": str(job.id)},
            owner=job.owner,
            idempotency_key=f"{job.id}:continuation",
            title=as_system.jobs.get(job.id).title,
        )
        result["status"] = "requeued"
        result["continued_by"] = str(submission.job.id)
        return result


class Scan(CatalogKind):
    """Finds new, changed and removed photos, and keeps what they say of themselves."""

    process = staticmethod(scan_photo)

    def plan(self, job: JobContext[CatalogParams, PhotoFacts]) -> Iterator[ScanInput]:
        """Each file that the last scan did not see as it is now."""
        directories = job.params["directories"]
        catalog = self._require_catalog(job.params)
        require_folders(directories)
        known_versions = {photo.path: (photo.size, photo.modified) for photo in self._repository.photos(catalog)}
        planned = 0
        for file in walk(directories):
            job.check()
            if known_versions.get(file.path) != (file.size, file.modified):
                planned += 1
                yield scan_input(file.path)
            if planned >= self._max_per_job:
                break

    def finalize(self, job: JobContext[CatalogParams, PhotoFacts]) -> ScanResult:
        """Keep the facts, and forget the photos that are gone."""
        directories = job.params["directories"]
        catalog = self._require_catalog(job.params)
        require_folders(directories)
        known_paths = {photo.path for photo in self._repository.photos(catalog)}
        facts = [(str(item.input["path"]), item.result) for item in job.items(ItemStatus.DONE)]
        present = {file.path for file in walk(directories)}
        new = sum(path not in known_paths for path, _ in facts)
        saved_count = self._repository.save(catalog, facts)
        removed_count = self._repository.remove(catalog, sorted(known_paths - present))
        result: ScanResult = {
            **summarize(job),
            "new": new,
            "changed": saved_count - new,
            "removed": removed_count,
            "unchanged": len(present & known_paths) - saved_count + new,
        }
        return self._continue(job, result)


class Thumbnails(CatalogKind):
    """Makes the thumbnails that are not there yet."""

    process = staticmethod(make_thumbnails)

    def plan(self, job: JobContext[ThumbnailParams, dict[str, ThumbnailData]]) -> Iterator[ThumbnailInput]:
        """Each photo that lacks one."""
        directory, sizes = Path(job.params["directory"]), job.params["sizes"]
        planned = 0
        for photo in self._repository.photos(self._require_catalog(job.params)):
            if not all(thumbnail_path(directory, photo.sha256, edge).exists() for edge in sizes):
                planned += 1
                yield {"path": photo.path, "sha256": photo.sha256}
            if planned >= self._max_per_job:
                break

    def finalize(self, job: JobContext[ThumbnailParams, dict[str, ThumbnailData]]) -> CatalogResult:
        """The thumbnails are files: there is nothing to keep."""
        self._require_catalog(job.params)
        return self._continue(job, summarize(job))


class Duplicates(CatalogKind):
    """Finds copies and near copies: the comparing is divided, the groups are put together at the end."""

    process = staticmethod(compare_hashes)

    def plan(self, job: JobContext[DuplicateParams, list[list[str]]]) -> Iterator[CompareInput]:
        """The parts of the comparing."""
        hashes, count = self._keep_hashes(self._require_catalog(job.params))
        parts = 1 + count // _HASHES_OF_A_PART
        for stretch in range(job.params["distance"] + 1):
            for part in range(parts):
                yield {"hashes": hashes, "stretch": stretch, "part": part, "parts": parts}

    def finalize(self, job: JobContext[DuplicateParams, list[list[str]]]) -> DuplicateResult:
        """Group what is near, and keep the groups."""
        catalog = self._require_catalog(job.params)
        near = ((int(first, 16), int(second, 16)) for pairs in job.results() for first, second in pairs)
        groups = groups_of(self._photos(catalog), near=near)
        members = ((photo.path, group.best.sha256) for group in groups for photo in group.photos)
        self._repository.group(catalog, members)
        largest = sorted(groups, key=lambda group: -len(group.photos))[:_MAX_DETAILS]
        return {
            **summarize(job),
            "photos": sum(1 for _ in self._repository.photos(catalog)),
            "groups": len(groups),
            "exact_groups": sum(group.exact for group in groups),
            "copies": sum(len(group.photos) - 1 for group in groups),
            "largest": [
                {"best": group.best.path, "copies": [photo.path for photo in group.photos[1:_MAX_DETAILS]]}
                for group in largest
            ],
        }

    def _keep_hashes(self, catalog_id: UUID) -> tuple[str, int]:
        """A catalog's hashes in a kept file: its SHA-256, by which a process finds it, and how many there are."""
        hashes = array("Q", sorted({photo.perceptual_hash for photo in self._repository.photos(catalog_id)}))
        file = self._app.acting_as(SYSTEM).files.keep(io.BytesIO(hashes.tobytes()), name="hashes", owner=None)
        return file.sha256, len(hashes)

    def _photos(self, catalog_id: UUID) -> Iterator[Photo]:
        for photo in self._repository.photos(catalog_id):
            pixels = int(photo.facts["width"]) * int(photo.facts["height"])
            taken_at = photo.facts.get("taken_at")
            yield Photo(photo.path, photo.sha256, photo.perceptual_hash, pixels, photo.size, taken_at)


class Tagging(CatalogKind):
    """Tags every photo."""

    process = staticmethod(tag_photo)

    def plan(self, job: JobContext[CatalogParams, list[str]]) -> Iterator[TagInput]:
        """Every photo."""
        for photo in self._repository.photos(self._require_catalog(job.params)):
            yield {"path": photo.path, "facts": photo.facts}

    def finalize(self, job: JobContext[CatalogParams, list[str]]) -> CatalogResult:
        """Keep the tags."""
        tags = ((str(item.input["path"]), item.result) for item in job.items(ItemStatus.DONE))
        self._repository.tag(self._require_catalog(job.params), tags)
        return summarize(job)


def scan_input(path: str) -> ScanInput:
    """The input of a photo's scan; a name that is not UTF-8 cannot be kept, so its item says that and ends."""
    text = storable_text(path)
    return {"path": text} if text == path else {"path": text, "name_unreadable": True}


def summarize(job: JobContext[Params, JSON]) -> CatalogResult:
    """The result that jobs of all four kinds have in common."""
    failed = job.progress.failed
    result: CatalogResult = {
        "status": "completed_with_errors" if failed else "completed",
        "catalog_id": job.params["catalog_id"],
        "processed": job.progress.done,
        "errors": failed,
    }
    if failed:
        details: list[PhotoError] = []
        for item in job.items(ItemStatus.ERROR):
            details.append({"path": item.input["path"], "error": item.last_error, "error_code": item.error_code})
            if len(details) == _MAX_DETAILS:
                break
        result["error_details"] = details
    return result
