"""Products over HTTP: hand in a table or pictures, by upload or by naming where they wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any
from uuid import uuid4

import orjson
from fastapi import APIRouter, Header, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from penstock import (
    VOCABULARIES,
    FormField,
    Identity,
    InvalidInput,
    Job,
    Json,
    SignedIn,
    StartForm,
    Submitting,
    documented,
)
from penstock_apps.products import schemas as shapes
from penstock_apps.products.intake import MOST_PICTURES, Handed, Refused, Taken, UploadOptions
from penstock_apps.products.retailer import sample_csv
from penstock_apps.products.service import Products

IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="The same request again, with the same key, gives the same job."),
]
_FIELDS = ("jobType", "encoding", "delimiter", "sheet")
_LARGEST_QUESTION = 64 * 1024
_SAMPLE = "/api/products/sample.csv"
_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {}}, "description": "The table."}}
_FORM = StartForm(
    "Look products up",
    text="A table or pictures of products: each row or picture is looked up at retailers.",
    fields=(
        FormField(
            "file",
            "A table, or pictures",
            "file",
            hint=f"One CSV, TSV or XLSX table, up to {MOST_PICTURES:,} pictures, or one ZIP of pictures.",
            accept=".csv,.tsv,.xlsx,.zip,image/*",
            multiple=True,
        ),
    ),
    answer="jobId",
    button="Look them up",
    sample=_SAMPLE,
)


def routes_of(products: Products) -> APIRouter:
    """The addresses of a products application."""
    routes = APIRouter(tags=["products"])

    @routes.post(
        "/api/jobs",
        status_code=202,
        summary="Hand in products",
        response_model=shapes.JobTaken,
        response_model_exclude_none=False,
        responses=documented(400, 401, 403, 413, 422, 429, 503),
        openapi_extra=shapes.upload_body() | _FORM.extra(),
    )
    async def submit_job(request: Request, who: Submitting, idempotency_key: IdempotencyKey = None) -> Response:
        """A table, pictures or a ZIP of pictures becomes a job; each row or picture is looked up at retailers.

        As JSON, `source` names where files wait, and each of them becomes a job.
        """
        products.intake.require_enabled()  # before a large body is read for nothing
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "multipart/form-data":
            async with _form(request) as form:
                taken = await run_in_threadpool(_uploaded, products, form, who, request, idempotency_key)
            return Json(_shown(taken), 202)
        if kind == "application/json":
            asked = _read(shapes.SourceAsked, await _small_body(request))
            return Json(await run_in_threadpool(_from_source, products, asked, who, request, idempotency_key), 202)
        raise InvalidInput(
            f"the body is {kind[:100]!r}: send multipart/form-data with a part named 'file', or JSON with a 'source'",
            field="Content-Type",
            code="CONTENT_TYPE_UNKNOWN",
        )

    @routes.post(
        "/api/ingestion/scan",
        summary="Take in what waits at a source",
        response_model=shapes.Scanned,
        responses=documented(400, 401, 403, 413, 422, 503),
    )
    def scan_source(asked: shapes.ScanAsked, who: SignedIn, request: Request) -> Response:
        """One job for each new file; a file that was taken in keeps its job, however often it is asked for."""
        found = products.intake.scan(
            asked.source, user=who.user, told=UploadOptions(job_type=asked.job_type), ip_address=_address(request)
        )
        return Json(
            {
                "taken": [{"name": name, "jobId": str(job.id)} for name, job in found.taken],
                "already": len(found.already),
                "failed": [_refused(one) for one in found.failed],
            }
        )

    @routes.get(_SAMPLE, summary="A table to try it with", response_class=Response, responses=_CSV | documented(401))
    async def get_sample_table(who: SignedIn) -> Response:
        """Products as people list them, some of them hard to find."""
        headers = {"Content-Disposition": 'attachment; filename="products.csv"'}
        return Response(sample_csv(), media_type="text/csv; charset=utf-8", headers=headers)

    return routes


@asynccontextmanager
async def _form(request: Request) -> AsyncIterator[FormData]:
    # One more than is taken, so that it is refused in our own words.
    form = await request.form(max_files=MOST_PICTURES + 1, max_fields=20)
    try:
        yield form
    finally:
        await form.close()


def _uploaded(
    products: Products, form: FormData, who: Identity, request: Request, idempotency_key: str | None
) -> Taken:
    texts: dict[str, str | None] = {}
    for name in _FIELDS:
        value = form.get(name)
        if isinstance(value, UploadFile):
            raise InvalidInput(f"{name} is a text, not a file", field=name)
        texts[name] = value or None
    files = [one for one in form.getlist("file") if isinstance(one, UploadFile)]
    return products.intake.take(
        [Handed(one.file, one.filename or "upload", one.content_type) for one in files],
        user=who.user,
        told=UploadOptions(texts["jobType"], texts["encoding"], texts["delimiter"], texts["sheet"]),
        idempotency_key=idempotency_key,
        ip_address=_address(request),
    )


def _from_source(
    products: Products, asked: shapes.SourceAsked, who: Identity, request: Request, idempotency_key: str | None
) -> dict[str, Any]:
    if idempotency_key is not None:
        products.intake.take_key(idempotency_key, asked.model_dump(), user=who.user)
    found = products.intake.scan(
        asked.source,
        user=who.user,
        told=UploadOptions(asked.job_type, asked.encoding, asked.delimiter, asked.sheet),
        # Asked for twice, a file is taken in twice, unless a key says that it is the same request.
        once_per=f"request {idempotency_key or uuid4()}",
        ip_address=_address(request),
    )
    both = [*found.already, *found.taken]
    if not both:
        if found.failed:
            first = found.failed[0]
            raise InvalidInput(f"{first.name}: {first.message}", field="source", code=first.code)
        raise InvalidInput(
            f"no file waits at {asked.source[:200]!r}: check the address, and whether a file is still being written",
            field="source",
            code="FILE_MISSING",
        )
    params: Any = both[0][1].params
    return {
        "jobId": str(both[0][1].id),
        "jobIds": [str(job.id) for _, job in both],
        "jobType": both[0][1].kind,
        "queueState": _queue_state(both[0][1]),
        "files": [name for name, _ in both],
        "mapping": params.get("mapping"),
        "failed": [_refused(one) for one in found.failed],
    }


def _shown(taken: Taken) -> dict[str, Any]:
    return {
        "jobId": str(taken.job.id),
        "jobType": taken.job_type,
        "queueState": _queue_state(taken.job),
        "files": list(taken.files),
        "mapping": taken.mapping,
    }


def _queue_state(job: Job) -> str:
    return VOCABULARIES["queue_state"].word(job.state, job.killed_by)


def _refused(one: Refused) -> dict[str, str]:
    return {"name": one.name, "code": one.code, "message": one.message}


async def _small_body(request: Request) -> bytes:
    """All of a body that should be small; no more of it is held than that."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_QUESTION:
            raise HTTPException(413, f"the JSON body is larger than {_LARGEST_QUESTION:,} bytes")
    return bytes(body)


def _read(shape: type[shapes.SourceAsked], body: bytes) -> shapes.SourceAsked:
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{field or 'the body'}: {first['msg']}", field=field or None) from error


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None
