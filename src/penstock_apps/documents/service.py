"""Documents as their users know them: create, submit, watch, in the words of the job lifecycle specification."""

from __future__ import annotations

from typing import BinaryIO
from uuid import UUID

from penstock import Caller, Job, Kind, Penstock, Policy, owner
from penstock.errors import JobNotFound
from penstock.lifecycle import JSON, ErrorType
from penstock_apps.documents.intake import DocumentIntake
from penstock_apps.documents.kinds import DOCUMENT, ReadDocument
from penstock_apps.documents.payloads import DocumentParams, DocumentResult
from penstock_apps.documents.settings import DocumentSettings
from penstock_apps.documents.vocabulary import DOCUMENTS
from penstock_apps.uploads import sha256_of

MAX_RETRIES = 3


class Documents:
    """The documents application on one Penstock."""

    def __init__(self, app: Penstock, settings: DocumentSettings) -> None:
        self._app = app
        self.settings = settings
        policy = Policy(
            retries=MAX_RETRIES,
            backoff="1s fixed",
            timeout=settings.timeout,
            memory_limit=settings.memory_bytes,
            runs_in="processes",
            queue_limit=settings.queue_limit,
            hold_limit=settings.hold_limit,
            wait_limit=settings.wait_limit,
        )
        self.kind: Kind[DocumentParams, DocumentParams, DocumentResult] = app.kinds.add(
            Kind.of(DOCUMENT, ReadDocument(DocumentIntake(self)), policy)
        )

    @property
    def max_body_bytes(self) -> int:
        """The largest upload; a document in it may be too large all the same, and then its job says so."""
        return self._app.settings.max_body_bytes

    def create(
        self,
        stream: BinaryIO,
        *,
        name: str,
        user: str | None = None,
        media_type: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Keep a document and record a job for it, which waits for :meth:`submit`.

        A document over the bound is kept up to the bound and one byte: the job will fail for its size, with a record.
        With an idempotency key it is compared with the one the key was used for before it is kept.
        """
        max_bytes = self.settings.max_bytes + 1
        as_user = self._app.acting_as(owner(user))
        fingerprint: JSON = None
        if idempotency_key is not None:
            fingerprint = ["document", name, media_type, sha256_of(stream, max_bytes=max_bytes)]
            earlier = as_user.take_key(idempotency_key, fingerprint)
            if earlier is not None:
                return as_user.jobs.get(earlier)
        file = as_user.files.keep(_Bounded(stream, max_bytes), name=name, media_type=media_type)
        params = DocumentParams(
            sha256=file.sha256, name=file.name, media_type=media_type, max_bytes=self.settings.max_bytes
        )
        submission = as_user.submit(
            self.kind,
            params,
            file=file,
            idempotency_key=idempotency_key,
            fingerprint=fingerprint,
            title=file.name,
            hold=True,
        )
        return submission.job

    def submit(self, job_id: UUID, *, by: Caller) -> Job:
        """Let a created job flow; a second time is refused."""
        self.get(job_id, by=by)
        return self._app.acting_as(by).jobs.release(job_id)

    def get(self, job_id: UUID, *, by: Caller) -> Job:
        """One document job."""
        job = self._app.acting_as(by).jobs.get(job_id)
        if job.kind != DOCUMENT:
            raise JobNotFound(f"there is no document job {job_id}")
        return job


class _Bounded:
    """A stream that ends after so many bytes."""

    def __init__(self, stream: BinaryIO, max_bytes: int) -> None:
        self._stream = stream
        self._remaining = max_bytes

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(self._remaining if size < 0 else min(size, self._remaining))
        self._remaining -= len(data)
        return data


def metadata(job: Job) -> dict[str, object]:
    """A job in the specification's fields and names."""
    return {
        "jobId": str(job.id),
        "state": DOCUMENTS.word(job.state, job.killed_by),
        "createdAt": job.created_at,
        "startedAt": job.started_at,
        "completedAt": job.completed_at or job.canceled_at,
        "retryCount": job.retries,
        "maxRetries": job.max_retries,
        "lastError": job.last_error or (job.killed_reason if job.canceled_at else None),
        "errorType": ErrorType.TERMINAL if job.canceled_at else job.error_type,
    }
