"""Catalogs over HTTP: make one, and let it be scanned, thumbnailed, searched for copies, tagged."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Header, Path, Query
from starlette.responses import FileResponse, Response

from penstock import Job
from penstock.http import FormField, Json, Router, SignedIn, StartForm, Submitting, documented
from penstock_apps.catalogs.photo_paths import path_data, path_key
from penstock_apps.catalogs.photo_repository import PhotoRecord, UnreadablePhoto
from penstock_apps.catalogs.repository import Catalog
from penstock_apps.catalogs.schemas import (
    CatalogChange,
    CatalogShown,
    DuplicateOptions,
    NewCatalog,
    PhotosShown,
    ScanOptions,
    Started,
    ThumbnailOptions,
    UnreadablePhotosShown,
)
from penstock_apps.catalogs.service import Catalogs

_PAGE = 100
Limit = Annotated[int, Query(ge=1, le=500)]
Key = Annotated[str, Path(description="The photo's `id`.", pattern="^[0-9a-f]{64}$")]
Size = Annotated[int, Path(ge=16, le=4096, description="Its longer edge, in pixels.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1, max_length=255, description="The same request again, with the same key, is answered as the first."
    ),
]
_THUMBNAIL: dict[int | str, dict[str, object]] = {
    200: {"content": {"image/jpeg": {}}, "description": "A JPEG."},
    304: {"description": "The client has it already."},
}
_NEW = StartForm(
    "New photo catalog",
    text="A name for some folders of photos; they are scanned at once.",
    fields=(
        FormField("name", "Name"),
        FormField(
            "source_directories",
            "Folders",
            "lines",
            hint="Whole paths on the server, one on each line, below the folders that PENSTOCK_CATALOG_ROOTS names.",
        ),
    ),
    then="/api/catalogs/{id}/scan",
    button="Make it and scan it",
)
_WORK = StartForm(
    "Work on a catalog",
    text="Scan it again, make thumbnails, find copies, or tag its photos.",
    fields=(
        FormField("catalog", "Catalog", "choice", choices_from="/api/catalogs?limit=500"),
        FormField(
            "action",
            "What to do",
            "choice",
            choices=(
                ("scan", "Scan it again"),
                ("thumbnails", "Make thumbnails"),
                ("detect-duplicates", "Find copies"),
                ("tag", "Tag photos"),
            ),
        ),
    ),
    address="/api/catalogs/{catalog}/{action}",
)


def routes_of(catalogs: Catalogs) -> Router:
    """The addresses of a catalogs application."""
    routes = Router(prefix="/api/catalogs", tags=["catalogs"])
    readable = documented(401, 404, 422, 503)
    startable = documented(401, 404, 409, 422, 429, 503)
    startable_with_options = documented(400, 401, 404, 409, 413, 422, 429, 503)

    @routes.post(
        "", status_code=201, summary="Make a catalog", response_model=CatalogShown,
        responses=documented(400, 401, 413, 422, 429, 503), openapi_extra=_NEW.extra(),
    )  # fmt: skip
    def create_catalog(body: NewCatalog, who: Submitting, idempotency_key: IdempotencyKey = None) -> Response:
        """A name for some folders. Nothing is read yet."""
        catalog = catalogs.create(body.name, body.source_directories, user=who.user, idempotency_key=idempotency_key)
        return Json(_catalog_body(catalog), 201)

    @routes.get("/{catalog_id}", summary="One catalog", response_model=CatalogShown, responses=readable)
    def get_catalog(catalog_id: UUID, who: SignedIn) -> Response:
        """Its name and its folders."""
        return Json(_catalog_body(catalogs.get(catalog_id, by=who.caller)))

    @routes.patch(
        "/{catalog_id}", summary="Change a catalog", response_model=CatalogShown,
        responses=documented(400, 401, 404, 413, 422, 503),
    )  # fmt: skip
    def change_catalog(catalog_id: UUID, body: CatalogChange, who: SignedIn) -> Response:
        """Another name, or other folders. The next scan forgets the photos that are in none of them any more."""
        catalog = catalogs.change(catalog_id, name=body.name, source_directories=body.source_directories, by=who.caller)
        return Json(_catalog_body(catalog))

    @routes.delete("/{catalog_id}", status_code=204, summary="Delete a catalog", responses=readable)
    def delete_catalog(catalog_id: UUID, who: SignedIn) -> Response:
        """What is known of its photos is forgotten, and jobs that work on it are canceled. The files stay."""
        catalogs.remove(catalog_id, by=who.caller)
        return Response(status_code=204)

    @routes.get("", summary="Your catalogs", response_model=list[CatalogShown], responses=documented(401, 422, 503))
    def list_catalogs(
        who: SignedIn,
        after: Annotated[UUID | None, Query(description="The last id of the page before.")] = None,
        limit: Limit = _PAGE,
    ) -> Response:
        """In the order of their ids; an admin sees everybody's."""
        return Json(
            [_catalog_body(catalog) for catalog in catalogs.repository.all(by=who.caller, after=after, limit=limit)]
        )

    @routes.get("/{catalog_id}/photos", summary="A catalog's photos", response_model=PhotosShown, responses=readable)
    def list_photos(
        catalog_id: UUID,
        who: SignedIn,
        after: Annotated[str, Query(description="`next` of the page before.", max_length=64)] = "",
        limit: Limit = _PAGE,
    ) -> Response:
        """As the last scan found them, in an order that does not change."""
        page = catalogs.photos.page(catalogs.get(catalog_id, by=who.caller).id, after=after, limit=limit)
        last = page[-1].key if len(page) == limit else None
        return Json({"photos": [_photo_body(photo) for photo in page], "next": last})

    @routes.get(
        "/{catalog_id}/unreadable", summary="Photos that could not be read", response_model=UnreadablePhotosShown,
        responses=readable,
    )  # fmt: skip
    def list_unreadable(
        catalog_id: UUID,
        who: SignedIn,
        after: Annotated[str, Query(description="`next` of the page before.", max_length=64)] = "",
        limit: Limit = _PAGE,
    ) -> Response:
        """Those of the last scan, and why. The next scan tries them again."""
        page = catalogs.photos.unreadable(catalogs.get(catalog_id, by=who.caller).id, after=after, limit=limit)
        last = path_key(page[-1].path) if len(page) == limit else None
        return Json({"photos": [_unreadable_body(photo) for photo in page], "next": last})

    @routes.get(
        "/{catalog_id}/photos/{photo}/thumbnails/{size}", summary="A photo's thumbnail", response_class=FileResponse,
        responses=readable | _THUMBNAIL,
    )  # fmt: skip
    def get_thumbnail(
        catalog_id: UUID,
        photo: Key,
        size: Size,
        who: SignedIn,
        if_none_match: Annotated[str | None, Header(description="The `ETag` of the one that is there already.")] = None,
    ) -> Response:
        """One of those a thumbnails job has made. A photo may change, so ask each time, with its `ETag`."""
        thumbnail = catalogs.thumbnail(catalog_id, photo, size, by=who.caller)
        headers = {"Cache-Control": "private, no-cache", "ETag": thumbnail.etag}
        if _matches(if_none_match, thumbnail.etag):
            return Response(status_code=304, headers=headers)
        return FileResponse(thumbnail.path, media_type="image/jpeg", headers=headers)

    @routes.post(
        "/{catalog_id}/scan", status_code=202, summary="Scan a catalog", response_model=Started,
        responses=startable_with_options, openapi_extra=_WORK.extra(),
    )  # fmt: skip
    def scan_catalog(
        catalog_id: UUID, who: Submitting, body: ScanOptions | None = None, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Finds new, changed and removed photos, and what they say of themselves."""
        max_removed = (body or ScanOptions()).max_removed
        job = catalogs.start_scan(catalog_id, max_removed, by=who.caller, idempotency_key=idempotency_key)
        return _job_body(job)

    @routes.post(
        "/{catalog_id}/thumbnails", status_code=202, summary="Make thumbnails", response_model=Started,
        responses=startable_with_options,
    )  # fmt: skip
    def make_thumbnails(
        catalog_id: UUID, who: Submitting, body: ThumbnailOptions | None = None, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Makes those that are not there yet."""
        options = body or ThumbnailOptions()
        job = catalogs.start_thumbnails(
            catalog_id, options.sizes, options.quality, by=who.caller, idempotency_key=idempotency_key
        )
        return _job_body(job)

    @routes.post(
        "/{catalog_id}/detect-duplicates", status_code=202, summary="Find copies", response_model=Started,
        responses=startable_with_options,
    )  # fmt: skip
    def detect_duplicates(
        catalog_id: UUID, who: Submitting, body: DuplicateOptions | None = None, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Finds photos that are the same, or look nearly so."""
        distance = (body or DuplicateOptions()).distance
        job = catalogs.start_duplicates(catalog_id, distance, by=who.caller, idempotency_key=idempotency_key)
        return _job_body(job)

    @routes.post(
        "/{catalog_id}/tag", status_code=202, summary="Tag photos", response_model=Started, responses=startable
    )
    def tag_photos(catalog_id: UUID, who: Submitting, idempotency_key: IdempotencyKey = None) -> Response:
        """Finds tags for every photo: its season, its camera, its colours."""
        return _job_body(catalogs.start_tagging(catalog_id, by=who.caller, idempotency_key=idempotency_key))

    return routes


def _job_body(job: Job) -> Response:
    return Json({"job_id": str(job.id), "status": "queued" if job.started_at is None else "running"}, 202)


def _catalog_body(catalog: Catalog) -> dict[str, object]:
    return {
        "id": str(catalog.id),
        "name": catalog.name,
        "source_directories": list(catalog.source_directories),
        "created_at": catalog.created_at,
        "last_scan": catalog.last_scan,
    }


def _photo_body(photo: PhotoRecord) -> dict[str, object]:
    return {
        "id": photo.key,
        **_path_body(photo.path),
        "size": photo.size,
        "sha256": photo.sha256,
        "facts": photo.facts,
        "tags": photo.tags,
        "group": photo.group_id,
    }


def _unreadable_body(photo: UnreadablePhoto) -> dict[str, object]:
    return {
        "id": path_key(photo.path),
        **_path_body(photo.path),
        "error_code": photo.error_code,
        "error": photo.error,
    }


def _path_body(path: str) -> dict[str, object]:
    return {"path_base64": None, **path_data(path)}


def _matches(if_none_match: str | None, etag: str) -> bool:
    """Has the client what would be answered?

    >>> _matches('W/"a", "b"', '"a"'), _matches("*", '"a"'), _matches('"b"', '"a"'), _matches(None, '"a"')
    (True, True, False, False)
    """
    etags = {tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")}
    return bool(etags & {etag, "*"})
