"""Documents as their users know them: create, submit, watch, in the words of the job lifecycle specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO
from uuid import UUID

from penstock import Caller, Job, Penstock, owner
from penstock.errors import ConfigurationError, JobNotFound
from penstock.lifecycle import VOCABULARIES, ErrorType, seconds, size_in_bytes
from penstock_apps.documents.processing import classify, process
from penstock_apps.uploads import sha256_of

KIND = "document"
MAX_RETRIES = 3
_WORDS = VOCABULARIES["documents"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document job may take, and how many may wait."""

    timeout: float = 60.0
    memory_bytes: int = 1024**3
    max_bytes: int = 50 * 1024**2
    queue_limit: int = 1_000
    wait_limit: float = 3600.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Limits:
        """Read ``DOCUMENTS_TIMEOUT``, ``_MEMORY``, ``_MAX_BYTES``, ``_QUEUE_LIMIT`` and ``_WAIT_LIMIT``."""
        defaults = cls()

        def given(name: str, default: str) -> str:
            return environment.get(f"DOCUMENTS_{name}", default)

        queue_limit = given("QUEUE_LIMIT", str(defaults.queue_limit))
        if not queue_limit.isdecimal():
            raise ConfigurationError(f"DOCUMENTS_QUEUE_LIMIT is {queue_limit!r}; it must be a whole number")
        return cls(
            timeout=seconds(given("TIMEOUT", f"{defaults.timeout}s")),
            memory_bytes=size_in_bytes(given("MEMORY", f"{defaults.memory_bytes}B")),
            max_bytes=size_in_bytes(given("MAX_BYTES", f"{defaults.max_bytes}B")),
            queue_limit=int(queue_limit),
            wait_limit=seconds(given("WAIT_LIMIT", f"{defaults.wait_limit}s")),
        )


class Documents:
    """The documents application on one Penstock."""

    def __init__(self, app: Penstock, limits: Limits) -> None:
        self._app = app
        self.limits = limits
        app.kind(
            KIND,
            retries=MAX_RETRIES,
            backoff="1s fixed",
            timeout=limits.timeout,
            memory_limit=limits.memory_bytes,
            runs_in="processes",
            queue_limit=limits.queue_limit,
            wait_limit=limits.wait_limit,
            classify=classify,
        )(process)

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
        most = self.limits.max_bytes + 1
        said: object = None
        if idempotency_key is not None:
            said = ["document", name, media_type, sha256_of(stream, most=most)]
            earlier = self._app.acting_as(owner(user)).take_key(idempotency_key, said)
            if earlier is not None:
                return self._app.acting_as(owner(user)).jobs.get(earlier)
        bounded = _Bounded(stream, most)
        kept = self._app.acting_as(owner(user)).files.keep(bounded, name=name, media_type=media_type)
        params = {
            "sha256": kept.sha256,
            "name": kept.name,
            "media_type": media_type,
            "max_bytes": self.limits.max_bytes,
        }
        return (
            self._app.acting_as(owner(user))
            .submit(
                KIND,
                params,
                file=kept,
                idempotency_key=idempotency_key,
                fingerprint=said,
                title=kept.name,
                hold=True,
            )
            .job
        )

    def submit(self, job_id: UUID, *, by: Caller) -> Job:
        """Let a created job flow; a second time is refused."""
        self._of_ours(job_id, by)
        return self._app.acting_as(by).jobs.release(job_id)

    def get(self, job_id: UUID, *, by: Caller) -> Job:
        """One document job."""
        return self._of_ours(job_id, by)

    def _of_ours(self, job_id: UUID, by: Caller) -> Job:
        job = self._app.acting_as(by).jobs.get(job_id)
        if job.kind != KIND:
            raise JobNotFound(f"there is no document job {job_id}")
        return job


class _Bounded:
    """A stream that ends after so many bytes."""

    def __init__(self, stream: BinaryIO, most: int) -> None:
        self._stream = stream
        self._left = most

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._stream.read(wanted)
        self._left -= len(data)
        return data


def metadata(job: Job) -> dict[str, object]:
    """A job in the specification's fields and names."""
    return {
        "jobId": str(job.id),
        "state": _WORDS.word(job.state, job.killed_by),
        "createdAt": job.created_at,
        "startedAt": job.started_at,
        "completedAt": job.completed_at or job.canceled_at,
        "retryCount": job.retries,
        "maxRetries": job.max_retries,
        "lastError": job.last_error or (job.killed_reason if job.canceled_at else None),
        "errorType": ErrorType.TERMINAL if job.canceled_at else job.error_type,
    }
