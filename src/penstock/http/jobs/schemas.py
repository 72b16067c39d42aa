"""The shapes of ``/api/jobs``: an answer is one of these values, and the reference is made from them.

Answers are plain dataclasses without slots: orjson writes those straight from their ``__dict__``. What comes from
outside is read by pydantic models, which check it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.http.system.schemas import LaneSetting
from penstock.lifecycle.states import Actor, ErrorType, ItemStatus, JobState, KilledBy, Phase
from penstock.lifecycle.vocabularies import CELERY, QUEUE_STATE, TASKS

MAX_NAMED = 10_000
MAX_CODES = 100

Status = Annotated[str, Field(json_schema_extra={"enum": list(TASKS.statuses)}, examples=["running"])]
QueueState = Annotated[str, Field(json_schema_extra={"enum": list(QUEUE_STATE.statuses)}, examples=["RUNNING"])]
CeleryStatus = Annotated[
    str,
    Field(
        json_schema_extra={"enum": list(CELERY.statuses)},
        description="What Celery would say of a coordinator; for debugging.",
    ),
]
State = Annotated[JobState, Field(description="The engine's own word, finer than `status`.")]


@dataclass(kw_only=True)
class JobProgress:
    """How far a job is; none of it ever goes backwards within one run."""

    current: Annotated[int, Field(description="Items that have ended.", examples=[412])]
    total: Annotated[int, Field(description="Items there are; grows while the job is being planned.", examples=[1000])]
    percent: Annotated[float, Field(description="0 to 100; 100 only when the job is completed.", examples=[41.2])]
    message: Annotated[str, Field(description="For people.", examples=["Processing... 41.2%"])]
    phase: Phase
    batches_completed: Annotated[int | None, Field(description="Whole hundreds of items; none for a job of one step.")]
    batches_total: int | None
    eta_seconds: Annotated[
        float | None,
        Field(
            description="How long the rest takes at the pace of the recent past; null while that is not known.",
            examples=[124.0],
        ),
    ]


@dataclass(kw_only=True)
class JobTimes:
    """How long a job has taken, over all its runs; what passes between two runs is not counted."""

    total_seconds: Annotated[float, Field(description="All of the three below.", examples=[95.0])]
    active_seconds: Annotated[float, Field(description="It ran.", examples=[60.0])]
    paused_seconds: Annotated[float, Field(examples=[30.0])]
    waiting_seconds: Annotated[float, Field(description="It was in the queue, or between two tries.", examples=[5.0])]


@dataclass(kw_only=True)
class Counts:
    """How far a job was at some moment."""

    processed: int
    total: int
    batches_completed: int | None
    batches_total: int | None


@dataclass(kw_only=True)
class FailedItem:
    """An item that ended in an error."""

    position: int
    error: str | None
    error_code: str | None
    attempts: int
    deaths: Annotated[int, Field(description="Workers that died while they held it; these do not count as tries.")]


@dataclass(kw_only=True)
class FailedTask:
    """A task of Celery's that failed or was revoked."""

    task_id: str
    name: str | None
    error: str | None
    error_code: str | None
    worker: Annotated[str | None, Field(description="Where it ran, if anybody has said so.")]


@dataclass(kw_only=True)
class JobListed:
    """A job in a list."""

    job_id: UUID
    status: Status
    state: State
    job_type: Annotated[str, Field(description="The kind.", examples=["price-check"])]
    title: Annotated[str | None, Field(description="What people know it by.", examples=["prices.csv"])]
    user_id: Annotated[str | None, Field(description="Whose it is.")]
    run: int
    created_at: datetime
    run_at: Annotated[
        datetime | None,
        Field(description="When a delayed job is released by itself; of a schedule's job, the tick it is for."),
    ]
    updated_at: datetime
    started_at: Annotated[datetime | None, Field(description="When it was started last: anew after a pause.")]
    completed_at: datetime | None
    times: JobTimes
    progress: JobProgress
    failed_items: Annotated[int, Field(description="Items that ended in an error.")]
    error_code: str | None
    killed_by: KilledBy | None
    celery_status: CeleryStatus


@dataclass(kw_only=True)
class JobListChange:
    """What has changed on a page of the list."""

    order: list[UUID]
    jobs: list[JobListed]
    next: str | None


@dataclass(kw_only=True)
class JobStatusResponse(JobListed):
    """A job as it stands now. A status is one of five, and ``completed`` means that nothing runs any more."""

    queue_state: QueueState
    total_items: int
    processed_items: int
    not_found_items: int
    skipped_items: int
    attempts: int
    deaths: Annotated[
        int, Field(description="Workers that died in this run while they held items; these do not count as tries.")
    ]
    last_heartbeat: datetime | None
    last_error: Annotated[str | None, Field(description="The last error, also of a job that is still running.")]
    file_id: UUID | None
    mapping: Annotated[dict[str, str | None] | None, Field(description="Which header of a table became which field.")]
    actions: Annotated[list[str], Field(description="What may be asked of it now.", examples=[["cancel", "pause"]])]
    has_mailbox: Annotated[bool, Field(description="Do results of this kind wait for their owner to use them?")]
    expires_at: Annotated[datetime | None, Field(description="When a result that is not used is abandoned.")]
    result: Annotated[
        Any,
        Field(
            description="What the job came to, once it is completed. Before that, how it failed or was killed, or "
            "that its work is handed out: its own `status`, and `celery_status`, together are the `status`."
        ),
    ]
    completed_with_errors: Annotated[bool, Field(description="Completed, but some items ended in an error.")]
    error_details: Annotated[list[FailedItem] | None, Field(description="The first hundred of those.")]
    failed_tasks: Annotated[
        list[FailedTask] | None, Field(description="Of a job that Celery moves: the first hundred tasks that failed.")
    ]
    continues: Annotated[UUID | None, Field(description="The job whose remaining work this one does.")]
    continued_by: Annotated[UUID | None, Field(description="The job that does what this one has left.")]
    error: Annotated[str | None, Field(description="Why it failed.")]
    error_type: Annotated[
        str | None, Field(description="The class of what was raised.", examples=["DatabaseConnectionError"])
    ]
    failure_type: Annotated[
        ErrorType | None, Field(description="Could the same work succeed another time, or never as it is?")
    ]
    failed_at: datetime | None
    failed_phase: Phase | None
    failed_batch: int | None
    progress_at_failure: Counts | None
    stack_trace: Annotated[str | None, Field(description="For admins.")]
    killed_at: datetime | None
    killed_reason: str | None
    progress_at_kill: Counts | None
    controllers: Annotated[
        list[LaneSetting],
        Field(description="The settings of the workers that serve its kind, and the signals behind them."),
    ]


@dataclass(kw_only=True)
class JobKilled(JobStatusResponse):
    """A job that was just stopped."""

    message: str = "Job cancelled"


@dataclass(kw_only=True)
class JobRerun(JobStatusResponse):
    """The job that does the work of another one again."""

    rerun_of: Annotated[UUID, Field(description="The job whose work it is.")]


@dataclass(kw_only=True)
class WorkerHealth:
    """Is there anybody who works?"""

    status: Literal["healthy", "unhealthy"]
    workers: Annotated[int, Field(description="Workers that were seen within the last half minute.")]
    active_tasks: Annotated[int, Field(description="Items they hold.")]
    message: Annotated[str, Field(description="For people.", examples=["1 worker(s) online"])]


@dataclass(kw_only=True)
class HistoryLine:
    """One transition of a job: from where to where, by whom, why and when."""

    sequence: int
    run: int
    from_state: JobState | None
    to_state: JobState
    actor: Actor
    actor_id: str | None
    reason: str | None
    data: Any
    at: datetime


@dataclass(kw_only=True)
class JobSamples:
    """What happened, over time."""

    samples: Annotated[list[LaneSetting], Field(description="The oldest first, 300 at most.")]


class Reason(BaseModel):
    """Why; kept in the history."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the shop is closed today"}]})

    reason: str | None = Field(default=None, max_length=2000, examples=["the shop is closed today"])


class Reprocess(BaseModel):
    """Which items run again, and how."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra={"examples": [{"scope": "job", "statuses": ["ERROR", "NOT_FOUND"]}]},
    )

    scope: Literal["job", "items"] = "job"
    item_ids: list[str] | None = Field(default=None, min_length=1, max_length=MAX_NAMED, examples=[["17", "18"]])
    statuses: list[ItemStatus] = Field(
        default=[ItemStatus.ERROR, ItemStatus.NOT_FOUND], min_length=1, max_length=len(ItemStatus)
    )
    error_codes: list[Annotated[str, Field(max_length=64)] | None] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_CODES,
        description="Only items that ended with one of these codes; null for those without a code.",
        examples=[["PROCESSING_ERROR", None]],
    )
    reset_attempts: bool = Field(default=False, description="Give each its full number of tries again.")
    permanent: bool = Field(default=False, description="Also those that failed for good.")
    reason: str | None = Field(default=None, max_length=2000)
