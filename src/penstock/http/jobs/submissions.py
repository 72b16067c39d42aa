"""Submitting over HTTP: files at ``/api/jobs``, and params at ``/api/kinds/{kind}/jobs``, for the kinds that say so.

The engine reads the request and answers; what a job is made of is the kind's business. Only kinds with an intake take
files, and only kinds with a schema take params: their routes are made when the server is, and described with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import orjson
from fastapi import Header, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from penstock.app import Penstock
from penstock.errors import InvalidInput
from penstock.http.auth import Submitting, count_less
from penstock.http.bodies import BodyRefused, BodyRequest, limit_body
from penstock.http.errors import documented
from penstock.http.forms import StartForm
from penstock.http.jobs.submission_schemas import (
    FilesRefused,
    FilesTaken,
    JobAccepted,
    SourceAsked,
    read_mapping,
    upload_body,
)
from penstock.http.moments import LONGEST_MOMENT, MOMENT
from penstock.http.responses import Json
from penstock.http.routing import Router
from penstock.lifecycle.callers import owner
from penstock.lifecycle.intake import HandedFile, Intake, Sender, TakenFiles, UploadOptions
from penstock.lifecycle.job import SubmitOutcome
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.moments import read_moment
from penstock.lifecycle.vocabularies import QUEUE_STATE, TASKS

MAX_FILES = 1_000
_OPTIONS = ("jobType", "encoding", "delimiter", "sheet", "mapping")
_LARGEST_QUESTION = 64 * 1024
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="The same request again, with the same key, gives the same job."),
]
RunAt = Annotated[
    str | None, Query(max_length=LONGEST_MOMENT, description="Not before then.", json_schema_extra=MOMENT)
]
Delay = Annotated[str | None, Query(max_length=20, description="Not before so long from now.", examples=["10m"])]


def submission_routes(app: Penstock) -> Router:
    """The routes that submit jobs of the kinds of ``app``."""
    routes = Router(tags=["jobs"])
    with_intake = [kind for kind in app.kinds if kind.intake is not None]
    if with_intake:
        _add_upload(routes, app, with_intake)
    for kind in app.kinds:
        if kind.params_schema is not None:
            _add_submit(routes, app, kind)
    return routes


def _add_submit(routes: Router, app: Penstock, kind: Kind) -> None:
    def submit(
        params: Any,
        who: Submitting,
        request: Request,
        run_at: RunAt = None,
        delay: Delay = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """One job with these params; a worker takes it from here, at once or later."""
        submission = app.acting_as(owner(who.user)).submit(
            kind.name,
            params.model_dump(mode="json"),
            idempotency_key=idempotency_key,
            ip_address=_address(request),
            run_at=read_moment(run_at, "run_at"),
            delay=delay,
        )
        job = submission.job
        if submission.answer is not SubmitOutcome.NEW:
            count_less(request)
        return Json(JobAccepted(job_id=job.id, status=TASKS.word(job.state, job.killed_by)).model_dump(), 202)

    submit.__annotations__["params"] = kind.params_schema
    routes.post(
        f"/api/kinds/{kind.name}/jobs",
        status_code=202,
        summary=f"Submit a job of the kind {kind.name}",
        name=f"submit_{kind.name}_job",
        response_model=JobAccepted,
        responses=documented(400, 401, 409, 413, 422, 429, 503),
    )(submit)


def _add_upload(routes: Router, app: Penstock, with_intake: Iterable[Kind]) -> None:
    kinds = app.kinds
    by_name: dict[str, Intake] = {kind.name: kind.intake for kind in with_intake if kind.intake is not None}
    form = next((form for intake in by_name.values() if (form := intake.start_form()) is not None), None)

    @routes.post(
        "/api/jobs",
        status_code=202,
        summary="Submit files",
        response_model=FilesTaken,
        responses=documented(400, 401, 403, 413, 422, 429, 503),
        openapi_extra=upload_body(sorted(by_name)) | (form.extra() if isinstance(form, StartForm) else {}),
    )
    # One more file than is taken, so that it is refused in our own words.
    @limit_body(app.settings.max_body_bytes, is_spooled=True, max_files=MAX_FILES + 1)
    async def submit_files(request: Request, who: Submitting, idempotency_key: IdempotencyKey = None) -> Response:
        """Files become a job of the kind that `jobType` names, or that their content tells.

        As JSON, `source` names where files wait, and each of them becomes a job.
        """
        sender = Sender(who.user, idempotency_key, _address(request), who.caller)
        for intake in set(by_name.values()):
            intake.require_enabled()  # before a large body is read for nothing
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == "multipart/form-data":
            async with _form(request) as form:
                taken_files = await run_in_threadpool(_take_upload, kinds, by_name, form, sender)
        elif media_type == "application/json":
            source_request = _read(await _small_body(request))
            taken_files = await run_in_threadpool(_take_source, kinds, by_name, source_request, sender)
        else:
            raise InvalidInput(
                f"the body is {media_type[:100]!r}: send multipart/form-data with a part named 'file', or JSON with a "
                "'source'",
                field="Content-Type",
                code="CONTENT_TYPE_UNKNOWN",
            )
        job = taken_files.jobs[0]
        report = FilesTaken(
            job_id=job.id,
            job_type=job.kind,
            queue_state=QUEUE_STATE.word(job.state, job.killed_by),
            files=list(taken_files.files),
            mapping=taken_files.mapping,
        )
        if media_type == "application/json":
            report.job_ids = [new_job.id for new_job in taken_files.jobs]
            report.failed = [
                FilesRefused(name=file.name, code=file.code, message=file.message) for file in taken_files.failed
            ]
        return Json(report.model_dump(by_alias=True, exclude_unset=True), 202)


def choose_intake(kinds: Kinds, intakes: dict[str, Intake], job_type: str | None) -> Intake:
    """The intake of the kind that was named, or the one that tells the kind from the files."""
    if job_type is not None:
        if job_type in intakes:
            return intakes[job_type]
        kinds.require_installed(job_type)
        raise InvalidInput(
            f"jobType is {job_type[:40]!r}; it is {' or '.join(sorted(intakes))}, or left out",
            field="jobType",
            code="JOB_TYPE_UNKNOWN",
        )
    choices = list(dict.fromkeys(intake for intake in intakes.values() if intake.finds_kind))
    if len(choices) != 1:
        raise InvalidInput(
            f"say in jobType what the files are for: {' or '.join(sorted(intakes))}",
            field="jobType",
            code="JOB_TYPE_MISSING",
        )
    return choices[0]


def _take_upload(kinds: Kinds, intakes: dict[str, Intake], form: FormData, sender: Sender) -> TakenFiles:
    texts: dict[str, str | None] = {}
    for name in _OPTIONS:
        value = form.get(name)
        if isinstance(value, UploadFile):
            raise InvalidInput(f"{name} is a text, not a file", field=name)
        texts[name] = value or None
    files = [part for part in form.getlist("file") if isinstance(part, UploadFile)]
    options = UploadOptions(
        texts["jobType"], texts["encoding"], texts["delimiter"], texts["sheet"], read_mapping(texts["mapping"])
    )
    handed_files = [HandedFile(file.file, file.filename or "upload", file.content_type) for file in files]
    return choose_intake(kinds, intakes, options.job_type).take_files(handed_files, options, sender)


def _take_source(kinds: Kinds, intakes: dict[str, Intake], source_request: SourceAsked, sender: Sender) -> TakenFiles:
    options = UploadOptions(
        source_request.job_type,
        source_request.encoding,
        source_request.delimiter,
        source_request.sheet,
        source_request.mapping,
    )
    return choose_intake(kinds, intakes, source_request.job_type).take_source(source_request.source, options, sender)


@asynccontextmanager
async def _form(request: Request) -> AsyncIterator[FormData]:
    form = await BodyRequest(request.scope, request.receive).form()
    try:
        yield form
    finally:
        await form.close()


async def _small_body(request: Request) -> bytes:
    """All of a body that should be small; no more of it is held than that."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_QUESTION:
            raise BodyRefused(413, "BODY_TOO_LARGE", f"the JSON body is larger than {_LARGEST_QUESTION:,} bytes")
    return bytes(body)


def _read(body: bytes) -> SourceAsked:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error
    try:
        return SourceAsked.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{field or 'the body'}: {first['msg']}", field=field or None) from error


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None
