"""What is done to the photos of a catalog, apart from finding them: thumbnails, copies, tags.

Each kind plans its items from what is kept of the catalog, and keeps what they found when it is finalized. What is done
to one photo is in ``handlers``.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import ClassVar, TypeVar
from uuid import UUID

from penstock import SYSTEM, ItemStatus, JobContext, Penstock
from penstock.lifecycle import JSON, storable_text
from penstock_apps.catalogs.catalog_jobs import CatalogJobs, work_of
from penstock_apps.catalogs.duplicates import Photo, groups_of
from penstock_apps.catalogs.handlers import compare_hashes, make_thumbnails, tag_photo, thumbnail_path
from penstock_apps.catalogs.hash_bits import NO_HASH
from penstock_apps.catalogs.payloads import (
    CatalogParams,
    CatalogResult,
    CompareInput,
    DuplicateParams,
    DuplicateResult,
    PhotoError,
    TagInput,
    ThumbnailData,
    ThumbnailInput,
    ThumbnailParams,
)
from penstock_apps.catalogs.photo_paths import path_data, path_in, path_key
from penstock_apps.catalogs.photo_repository import Guard, PhotoRecord, PhotoRepository
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
    errors = result.get("errors")
    if "groups" in result:
        text = f"{pluralize(result['groups'], 'group')} with {result['copies']} copies"
        return f"{text}, {pluralize(errors, 'part')} could not be compared" if errors else text
    texts = [f"{result.get('processed', 0):,} done"]
    if errors:
        texts.append(f"{errors:,} could not be read")
    if result.get("out_of_sight"):
        texts.append(f"{result['out_of_sight']:,} in folders that could not be read")
    if result.get("missing"):
        texts.append(f"{result['missing']:,} are missing and were kept: the page Catalogs asks what to do")
    return ", ".join(texts)


class CatalogKind:
    """What the kinds share."""

    name: ClassVar[str]
    describe = staticmethod(describe)

    def __init__(self, app: Penstock, jobs: CatalogJobs, photos: PhotoRepository, max_per_job: int) -> None:
        self._app = app
        self._jobs = jobs
        self._photos = photos
        self._max_per_job = max_per_job

    @staticmethod
    def options(_: JSON) -> list[JSON]:
        """What jobs of the kind are told, and what makes them different work."""
        return []

    def _begin(self, job: JobContext[Params, JSON]) -> UUID:
        """The catalog of a job that plans; where somebody has removed it meanwhile, the job fails for good."""
        catalog_id = UUID(job.params["catalog_id"])
        self._jobs.begin(catalog_id, self._work(job), job.id)
        return catalog_id

    def _end(self, job: JobContext[Params, JSON]) -> tuple[UUID, Guard]:
        """The catalog of a job that keeps what it has found, and what its writing is guarded by."""
        catalog_id = UUID(job.params["catalog_id"])
        guard = self._jobs.guard(catalog_id, self._work(job), job.id)
        self._app.in_transaction(guard)
        return catalog_id, guard

    def _work(self, job: JobContext[Params, JSON]) -> str:
        return work_of(self.name, self.options(job.params))

    def _planned_photos(self, job: JobContext[Params, JSON]) -> Iterator[PhotoRecord]:
        """The catalog's photos, behind those that the part before has done."""
        after = job.params["after"] if "after" in job.params else ""  # noqa: SIM401 - mypy takes get() for an object
        return self._photos.all(self._begin(job), after=after)

    def _go_on_behind(self, job: JobContext[Params, JSON], catalog_id: UUID, result: Result) -> Result:
        """A full job hands the photos behind its last one to another: what failed is not tried again."""
        if job.progress.total < self._max_per_job:
            return result
        last = max(path_key(path_in(item.input)) for item in job.items())
        return hand_on(result, self._jobs.go_on(catalog_id, self._work(job), job, {"after": last}))


class Thumbnails(CatalogKind):
    """Makes the thumbnails that are not there yet."""

    name = "thumbnails"
    process = staticmethod(make_thumbnails)

    @staticmethod
    def options(params: JSON) -> list[JSON]:
        """Sizes and quality."""
        return [params["sizes"], params["quality"]]

    def plan(self, job: JobContext[ThumbnailParams, dict[str, ThumbnailData]]) -> Iterator[ThumbnailInput]:
        """Each photo that lacks one."""
        directory, sizes = Path(job.params["directory"]), job.params["sizes"]
        lacking = (
            photo
            for photo in self._planned_photos(job)
            if not all(thumbnail_path(directory, photo.sha256, edge).exists() for edge in sizes)
        )
        for photo in islice(lacking, self._max_per_job):
            job.check()
            yield {**path_data(photo.path), "sha256": photo.sha256}

    def finalize(self, job: JobContext[ThumbnailParams, dict[str, ThumbnailData]]) -> CatalogResult:
        """The thumbnails are files: there is nothing to keep."""
        catalog_id, _ = self._end(job)
        return self._go_on_behind(job, catalog_id, summarize(job))


class Duplicates(CatalogKind):
    """Finds copies and near copies: the comparing is divided, the groups are put together at the end."""

    name = "duplicates"
    process = staticmethod(compare_hashes)

    @staticmethod
    def options(params: JSON) -> list[JSON]:
        """The distance."""
        return [params["distance"]]

    def plan(self, job: JobContext[DuplicateParams, list[list[str]]]) -> Iterator[CompareInput]:
        """The parts of the comparing."""
        hashes, count = self._keep_hashes(self._begin(job))
        parts = 1 + count // _HASHES_OF_A_PART
        for stretch in range(job.params["distance"] + 1):
            for part in range(parts):
                yield {"hashes": hashes, "stretch": stretch, "part": part, "parts": parts}

    def finalize(self, job: JobContext[DuplicateParams, list[list[str]]]) -> DuplicateResult:
        """Group what is near, and keep the groups."""
        catalog_id, guard = self._end(job)
        near = ((int(first, 16), int(second, 16)) for pairs in job.results() for first, second in pairs)
        group_ids: dict[str, str | None] = {}
        photos: list[Photo] = []
        for record in self._photos.all(catalog_id):
            job.check()
            photos.append(_photo(record))
            if record.group_id is not None:
                group_ids[record.key] = record.group_id
        groups = groups_of(photos, near=near)
        new_group_ids: dict[str, str | None] = dict.fromkeys(group_ids)
        new_group_ids |= {path_key(photo.path): group.best.sha256 for group in groups for photo in group.photos}
        changes = {key: group for key, group in new_group_ids.items() if group_ids.get(key) != group}
        self._photos.group(catalog_id, changes, guard)
        largest = sorted(groups, key=lambda group: -len(group.photos))[:_MAX_DETAILS]
        return {
            **summarize(job),
            "photos": len(photos),
            "groups": len(groups),
            "exact_groups": sum(group.exact for group in groups),
            "copies": sum(len(group.photos) - 1 for group in groups),
            "largest": [
                {
                    "best": storable_text(group.best.path),
                    "copies": [storable_text(photo.path) for photo in group.photos[1:_MAX_DETAILS]],
                }
                for group in largest
            ],
        }

    def _keep_hashes(self, catalog_id: UUID) -> tuple[str, int]:
        """A catalog's hashes in a kept file: its SHA-256, by which a process finds it, and how many there are."""
        distinct = {photo.perceptual_hash for photo in self._photos.all(catalog_id)} - {NO_HASH}
        hashes = array("Q", sorted(distinct))
        file = self._app.acting_as(SYSTEM).files.keep(io.BytesIO(hashes.tobytes()), name="hashes", owner=None)
        return file.sha256, len(hashes)


class Tagging(CatalogKind):
    """Tags every photo."""

    name = "tagging"
    process = staticmethod(tag_photo)

    def plan(self, job: JobContext[CatalogParams, list[str]]) -> Iterator[TagInput]:
        """Every photo."""
        for photo in islice(self._planned_photos(job), self._max_per_job):
            job.check()
            yield {**path_data(photo.path), "facts": photo.facts}

    def finalize(self, job: JobContext[CatalogParams, list[str]]) -> CatalogResult:
        """Keep the tags."""
        catalog_id, guard = self._end(job)
        self._photos.tag(catalog_id, self._found_tags(job), guard)
        return self._go_on_behind(job, catalog_id, summarize(job))

    def _found_tags(self, job: JobContext[CatalogParams, list[str]]) -> Iterable[tuple[str, str, list[str]]]:
        for item in job.items(ItemStatus.DONE):
            job.check()
            yield path_in(item.input), item.input["facts"]["sha256"], item.result


def hand_on(result: Result, job_id: UUID) -> Result:
    """The result of a job whose remaining work another one does."""
    result["status"] = "requeued"
    result["continued_by"] = str(job_id)
    return result


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
        result["error_details"] = [
            _detail(item.input, item.last_error, item.error_code)
            for item in islice(job.items(ItemStatus.ERROR), _MAX_DETAILS)
        ]
    return result


def _detail(item_input: JSON, error: str | None, error_code: str | None) -> PhotoError:
    """What failed: a photo, or a part of the comparing."""
    if "path" in item_input:
        return {"path": item_input["path"], "error": error, "error_code": error_code}
    part = f"bits {item_input['stretch'] + 1}, part {item_input['part'] + 1} of {item_input['parts']}"
    return {"part": part, "error": error, "error_code": error_code}


def _photo(record: PhotoRecord) -> Photo:
    pixels = int(record.facts["width"]) * int(record.facts["height"])
    return Photo(record.path, record.sha256, record.perceptual_hash, pixels, record.size, record.facts.get("taken_at"))
