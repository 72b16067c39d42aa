"""The words of the lifecycle: what a job, an item, and an ending can be."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. What each may become is in :mod:`penstock.lifecycle.transitions`."""

    CREATED = "created"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    COMMITTED = "committed"
    ABANDONED = "abandoned"


ACTIVE = frozenset({JobState.CREATED, JobState.QUEUED, JobState.RUNNING, JobState.RETRYING, JobState.PAUSED})
"""States in which work is still to come."""

FLOWING = ACTIVE - {JobState.CREATED, JobState.PAUSED}
"""States in which a job goes on by itself: one such job may do the work of a (kind, unique_key), and be followed."""

FINISHED = frozenset(JobState) - ACTIVE
"""States in which no worker touches the job any more."""


class ItemStatus(StrEnum):
    """Where one unit of work stands."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    DONE = "DONE"
    ERROR = "ERROR"
    NOT_FOUND = "NOT_FOUND"
    SKIPPED = "SKIPPED"


ENDED = frozenset({ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED})
"""Item statuses that count as processed."""


class ItemRole(StrEnum):
    """Which step of its kind an item runs."""

    PLAN = "plan"
    ITEM = "item"
    FINALIZE = "finalize"


class Phase(StrEnum):
    """What a job is busy with, for people."""

    INIT = "init"
    BATCHING = "batching"
    PROCESSING = "processing"
    FINALIZING = "finalizing"


PHASE_OF_ROLE = {
    ItemRole.PLAN: Phase.BATCHING,
    ItemRole.ITEM: Phase.PROCESSING,
    ItemRole.FINALIZE: Phase.FINALIZING,
}


class KilledBy(StrEnum):
    """Who or what ended a job early."""

    USER = "user"
    SYSTEM = "system"
    TIMEOUT = "timeout"
    WORKER_CRASH = "worker_crash"
    OOM = "oom"


class ErrorType(StrEnum):
    """Would the same work have a chance another time?"""

    RETRYABLE = "RETRYABLE"
    TERMINAL = "TERMINAL"


class Actor(StrEnum):
    """Who may cause a transition."""

    OWNER = "owner"
    ADMIN = "admin"
    WORKER = "worker"
    SYSTEM = "system"
