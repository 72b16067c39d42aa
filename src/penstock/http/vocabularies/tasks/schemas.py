"""The shapes of ``/api/jobs``: what the reference shows, and what a test holds the answers to."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

Status = Literal["queued", "running", "completed", "failed", "killed"]
State = Literal[
    "created", "queued", "running", "retrying", "paused", "succeeded", "failed", "canceled", "committed", "abandoned"
]
PhaseName = Literal["init", "batching", "processing", "finalizing"]


class JobProgress(BaseModel):
    """How far a job is; none of it ever goes backwards within one run."""

    current: int = Field(description="Items that have ended.", examples=[412])
    total: int = Field(description="Items there are; grows while the job is being planned.", examples=[1000])
    percent: float = Field(description="0 to 100; 100 only when the job is completed.", examples=[41.2])
    message: str = Field(description="For people.", examples=["Processing... 41.2%"])
    phase: PhaseName
    batches_completed: int | None = Field(description="Whole hundreds of items; none for a job of one step.")
    batches_total: int | None
    failed: int = Field(description="Items that ended in an error.")
    eta_seconds: float | None = Field(description="What is left, at the speed so far; none before the first item.")


class Counts(BaseModel):
    """How far a job was at some moment."""

    processed: int
    total: int
    batches_completed: int | None = None
    batches_total: int | None = None


class FailedItem(BaseModel):
    """An item that ended in an error."""

    position: int
    error: str | None
    error_code: str | None
    attempts: int
    deaths: int = Field(description="Workers that died while they held it; they used up no try.")


class Controller(BaseModel):
    """How one worker's lane for this kind of job is set just now."""

    worker: str
    at: datetime
    claim_size: int | None
    concurrency: int | None
    ingest_rows: int | None
    lease_seconds: float | None
    signals: dict[str, Any] = Field(description="What the settings followed.")
    gauges: Any = Field(description="Figures of the application's own, such as its providers' throttle rates.")


class JobStatusResponse(BaseModel):
    """A job as it stands now. A status is one of five, and ``completed`` means that nothing runs any more."""

    job_id: UUID
    status: Status
    state: State = Field(description="The engine's own word, finer than `status`.")
    job_type: str = Field(description="The kind.", examples=["price-check"])
    title: str | None = Field(description="What people know it by.", examples=["prices.csv"])
    user_id: str | None = Field(description="Whose it is.")
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    run: int
    progress: JobProgress
    actions: list[str] = Field(description="What may be asked of it now.", examples=[["cancel", "pause"]])
    has_mailbox: bool = Field(description="Do results of this kind wait for their owner to use them?")
    expires_at: datetime | None = Field(description="When a result that nobody uses is given up.")
    result: Any = Field(default=None, description="What the job came to, once it is completed.")
    completed_with_errors: bool = Field(default=False, description="Completed, but some items ended in an error.")
    error_details: list[FailedItem] | None = Field(default=None, description="The first hundred of those.")
    continues: UUID | None = Field(default=None, description="The job whose remaining work this one does.")
    continued_by: UUID | None = Field(default=None, description="The job that does what this one has left.")
    error: str | None = None
    error_type: str | None = None
    error_code: str | None = None
    failed_at: datetime | None = None
    failed_phase: PhaseName | None = None
    failed_batch: int | None = None
    progress_at_failure: Counts | None = None
    stack_trace: str | None = Field(default=None, description="For admins.")
    killed_by: Literal["user", "system", "timeout", "worker_crash", "oom"] | None = None
    killed_at: datetime | None = None
    killed_reason: str | None = None
    progress_at_kill: Counts | None = None
    celery_status: str = Field(description="What Celery would say of a coordinator; for debugging.")
    jobId: UUID = Field(description="The same as `job_id`; the fields from here on are the pipeline's.")  # noqa: N815
    jobType: str  # noqa: N815
    queueState: Literal["QUEUED", "RUNNING", "PAUSED", "DONE", "FAILED"]  # noqa: N815
    userId: str | None  # noqa: N815
    fileId: UUID | None  # noqa: N815
    totalItems: int  # noqa: N815
    processedItems: int  # noqa: N815
    failedItems: int  # noqa: N815
    notFoundItems: int  # noqa: N815
    skippedItems: int  # noqa: N815
    lastHeartbeat: datetime | None  # noqa: N815
    attempts: int
    deaths: int = Field(description="Workers that died in this run while they held items; they used up no try.")
    lastError: str | None  # noqa: N815
    mapping: dict[str, str | None] | None = Field(description="Which header of a table became which field.")
    controllers: list[Controller] = Field(description="What the workers at it have chosen, and what they saw.")


class JobListed(BaseModel):
    """A job in a list."""

    job_id: UUID
    status: Status
    state: State
    job_type: str
    title: str | None
    user_id: str | None
    run: int
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    progress: JobProgress
    error_code: str | None
    killed_by: str | None
    celery_status: str


class JobKilled(JobStatusResponse):
    """A job that was just stopped."""

    message: str = "Job cancelled"


class HistoryLine(BaseModel):
    """One transition of a job: from where to where, by whom, why and when."""

    sequence: int
    run: int
    from_state: str | None
    to_state: str
    actor: str
    actor_id: str | None
    reason: str | None
    data: Any
    at: datetime
