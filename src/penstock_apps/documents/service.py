"""Documents as their users know them: create, submit, watch, in the words of the job lifecycle specification."""

from __future__ import annotations

from typing import BinaryIO
from uuid import UUID

from penstock import Caller, ErrorType, Job, JobNotFound, Penstock, owner
from penstock_apps.documents import kinds
from penstock_apps.documents.intake import DocumentIntake
from penstock_apps.documents.kinds import DOCUMENT
from penstock_apps.documents.settings import DocumentSettings
from penstock_apps.documents.vocabulary import DOCUMENTS
from penstock_apps.uploads import sha256_of

MAX_RETRIES = 3


class Documents:
    """The documents application on one Penstock."""

    def __init__(self, app: Penstock, settings: DocumentSettings) -> None:
        self._app = app
        self.settings = settings
        app.kind(
            DOCUMENT,
            retries=MAX_RETRIES,
            backoff="1s fixed",
            timeout=settings.timeout,
            memory_limit=settings.memory_bytes,
            runs_in="processes",
            queue_limit=settings.queue_limit,
            wait_limit=settings.wait_limit,
        )(self._definition())

    def _definition(self) -> type:
        taking = DocumentIntake(self)

        class Document:
            """Reads one document."""

            process = staticmethod(kinds.process)
            classify = staticmethod(kinds.classify)
            describe = staticmethod(kinds.describe)
            words = DOCUMENTS
            intake = taking

        return Document

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
        said: object = None
        if idempotency_key is not None:
            said = ["document", name, media_type, sha256_of(stream, most=max_bytes)]
            earlier = self._app.take_key(idempotency_key, said, owner=user)
            if earlier is not None:
                return self._app.get(earlier)
        bounded = _Bounded(stream, max_bytes)
        kept = self._app.keep_file(bounded, name=name, owner=user, media_type=media_type)
        params = {
            "sha256": kept.sha256,
            "name": kept.name,
            "media_type": media_type,
            "max_bytes": self.settings.max_bytes,
        }
        return self._app.submit(
            DOCUMENT,
            params,
            owner=user,
            by=owner(user),
            file=kept,
            idempotency_key=idempotency_key,
            fingerprint=said,
            title=kept.name,
            hold=True,
        ).job

    def submit(self, job_id: UUID, *, by: Caller) -> Job:
        """Let a created job flow; a second time is refused."""
        self._of_ours(job_id, by)
        return self._app.release(job_id, by=by)

    def get(self, job_id: UUID, *, by: Caller) -> Job:
        """One document job."""
        return self._of_ours(job_id, by)

    def _of_ours(self, job_id: UUID, by: Caller) -> Job:
        job = self._app.get(job_id, by=by)
        if job.kind != DOCUMENT:
            raise JobNotFound(f"there is no document job {job_id}")
        return job


class _Bounded:
    """A stream that ends after so many bytes."""

    def __init__(self, stream: BinaryIO, max_bytes: int) -> None:
        self._stream = stream
        self._left = max_bytes

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._stream.read(wanted)
        self._left -= len(data)
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
