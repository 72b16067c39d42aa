"""Catalogs over HTTP: make one, and let it be scanned, thumbnailed, searched for copies, tagged."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Header
from pydantic import BaseModel, Field
from starlette.responses import Response

from penstock import Job, Json, SignedIn, Submitting, documented
from penstock_apps.catalogs.records import Catalog
from penstock_apps.catalogs.service import Catalogs

IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=255, description="The same key and user give the same job.")
]


class NewCatalog(BaseModel):
    """What a catalog is made of."""

    name: str = Field(min_length=1, max_length=255, examples=["Holidays"])
    source_directories: list[Annotated[str, Field(max_length=4096)]] = Field(
        min_length=1, max_length=100, description="Folders below the allowed roots.", examples=[["/srv/photos/2024"]]
    )


class CatalogShown(BaseModel):
    """A catalog."""

    id: UUID
    name: str
    source_directories: list[str]
    created_at: datetime


class Started(BaseModel):
    """The job that does what was asked for."""

    job_id: UUID
    status: Literal["queued", "running"]


class ThumbnailOptions(BaseModel):
    """How thumbnails are made."""

    sizes: list[int] | None = Field(default=None, max_length=8, description="Longer edges in pixels, 16 to 4096.")
    quality: int | None = Field(default=None, ge=1, le=95, description="JPEG's.")


class DuplicateOptions(BaseModel):
    """What counts as a near copy."""

    distance: int = Field(default=4, ge=0, le=10, description="In how many of 64 bits two pictures may differ.")


def routes_of(catalogs: Catalogs) -> APIRouter:
    """The addresses of a catalogs application."""
    routes = APIRouter(prefix="/api/catalogs", tags=["catalogs"])
    answers = documented(401, 404, 409, 422, 429, 503)

    @routes.post("", status_code=201, summary="Make a catalog", response_model=CatalogShown, responses=answers)
    def create(given: NewCatalog, who: Submitting) -> Response:
        """A name for some folders. Nothing is read yet."""
        return Json(_shown(catalogs.create(given.name, given.source_directories, user=who.user)), 201)

    @routes.get("/{catalog_id}", summary="One catalog", response_model=CatalogShown, responses=answers)
    def get(catalog_id: UUID, who: SignedIn) -> Response:
        """Its name and its folders."""
        return Json(_shown(catalogs.get(catalog_id, by=who.caller)))

    @routes.post(
        "/{catalog_id}/scan", status_code=202, summary="Scan a catalog", response_model=Started, responses=answers
    )
    def scan(catalog_id: UUID, who: Submitting, idempotency_key: IdempotencyKey = None) -> Response:
        """Finds new, changed and removed photos, and what they say of themselves."""
        return _started(catalogs.start(catalog_id, "scan", by=who.caller, idempotency_key=idempotency_key))

    @routes.post(
        "/{catalog_id}/thumbnails", status_code=202, summary="Make thumbnails", response_model=Started,
        responses=answers,
    )  # fmt: skip
    def thumbnails(
        catalog_id: UUID, who: Submitting, given: ThumbnailOptions | None = None, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Makes those that are not there yet."""
        wanted = given or ThumbnailOptions()
        more = catalogs.thumbnail_options(wanted.sizes, wanted.quality)
        return _started(
            catalogs.start(catalog_id, "thumbnails", by=who.caller, more=more, idempotency_key=idempotency_key)
        )

    @routes.post(
        "/{catalog_id}/detect-duplicates", status_code=202, summary="Find copies", response_model=Started,
        responses=answers,
    )  # fmt: skip
    def detect_duplicates(
        catalog_id: UUID, who: Submitting, given: DuplicateOptions | None = None, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Finds photos that are the same, or look nearly so."""
        more = {"distance": (given or DuplicateOptions()).distance}
        return _started(
            catalogs.start(catalog_id, "duplicates", by=who.caller, more=more, idempotency_key=idempotency_key)
        )

    @routes.post("/{catalog_id}/tag", status_code=202, summary="Tag photos", response_model=Started, responses=answers)
    def tag(catalog_id: UUID, who: Submitting, idempotency_key: IdempotencyKey = None) -> Response:
        """Finds words for every photo."""
        return _started(catalogs.start(catalog_id, "tagging", by=who.caller, idempotency_key=idempotency_key))

    return routes


def _started(job: Job) -> Response:
    return Json({"job_id": str(job.id), "status": "queued" if job.started_at is None else "running"}, 202)


def _shown(one: Catalog) -> dict[str, object]:
    return {
        "id": str(one.id),
        "name": one.name,
        "source_directories": list(one.source_directories),
        "created_at": one.created_at,
    }
