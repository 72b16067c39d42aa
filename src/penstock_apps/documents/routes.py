"""Documents over HTTP: create a job with its file, submit it, look at it, in the specification's own fields."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Header, UploadFile
from starlette.responses import Response

from penstock.http import FormField, Json, Router, SignedIn, StartForm, Submitting, documented, limit_body
from penstock_apps.documents.schemas import DocumentJob
from penstock_apps.documents.service import Documents, metadata

IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="The same request again, with the same key, gives the same job."),
]
_EXAMPLE = {"requestBody": {"content": {"multipart/form-data": {"example": {"file": "the file's bytes"}}}}}
_FORM = StartForm(
    "Hand in a document",
    text="Its text, its words and its language are found.",
    fields=(
        FormField(
            "file",
            "The document",
            "file",
            hint="A PDF, a Word document (DOCX), a web page or plain text.",
            accept=".pdf,.docx,.html,.htm,.txt,.md,text/plain",
        ),
    ),
    then="/api/documents/jobs/{jobId}/submit",
    answer="jobId",
    button="Hand it in",
)


def routes_of(documents: Documents) -> Router:
    """The three addresses of a documents application."""
    routes = Router(prefix="/api/documents/jobs", tags=["documents"])

    @routes.post(
        "",
        status_code=201,
        summary="Hand in a document",
        response_model=DocumentJob,
        responses=documented(400, 401, 413, 422, 429, 503),
        openapi_extra=_EXAMPLE | _FORM.extra(),
    )
    @limit_body(documents.max_body_bytes, is_spooled=True)
    def create_document_job(file: UploadFile, who: Submitting, idempotency_key: IdempotencyKey = None) -> Response:
        """Its job is CREATED, and waits to be submitted."""
        job = documents.create(
            file.file,
            name=file.filename or "document",
            user=who.user,
            media_type=file.content_type,
            idempotency_key=idempotency_key,
        )
        return Json(metadata(job), 201)

    @routes.post(
        "/{job_id}/submit",
        summary="Let it be processed",
        response_model=DocumentJob,
        responses=documented(401, 404, 409, 422, 429, 503),
    )
    def submit_document_job(job_id: UUID, who: Submitting) -> Response:
        """CREATED becomes QUEUED. A second time is refused."""
        return Json(metadata(documents.submit(job_id, by=who.caller)))

    @routes.get(
        "/{job_id}",
        summary="One document's job",
        response_model=DocumentJob,
        responses=documented(401, 404, 422, 503),
    )
    def get_document_job(job_id: UUID, who: SignedIn) -> Response:
        """Its state, its tries and its last error."""
        return Json(metadata(documents.get(job_id, by=who.caller)))

    return routes
