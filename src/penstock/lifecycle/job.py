"""A job, an item and a line of history as the rest of the program sees them: values, not rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import (
    FINISHED,
    WELL_ENDED,
    Actor,
    ErrorType,
    ItemRole,
    ItemStatus,
    JobState,
    KilledBy,
    Phase,
    TrackingEngine,
)
from penstock.lifecycle.times import Pace, Times


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is, in items that ended."""

    total: int
    processed: int
    failed: int
    not_found: int
    skipped: int

    @property
    def done(self) -> int:
        """Items that ended well."""
        return self.processed - self.failed - self.not_found - self.skipped


@dataclass(frozen=True, slots=True)
class Job:
    """What a user asked for, as it stands now."""

    id: UUID
    kind: str
    title: str | None
    user_id: str | None
    state: JobState
    phase: Phase
    run: int
    priority: int
    params: JSON
    result: JSON
    unique_key: str | None
    leader_id: UUID | None
    progress: Progress
    attempts: int
    retries: int
    deaths: int
    """How often, in this run, a worker died while it held items of the job; none of them used up a try."""
    max_retries: int
    last_error: str | None
    error_code: str | None
    error_type: ErrorType | None
    error_class: str | None
    """The name of the class of what was raised; None where nothing was."""
    failed_phase: Phase | None
    killed_by: KilledBy | None
    killed_reason: str | None
    message: str | None
    file_id: UUID | None
    ip_address: str | None
    last_heartbeat: datetime | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    committed_at: datetime | None
    abandoned_at: datetime | None
    canceled_at: datetime | None
    updated_at: datetime
    state_since: datetime | None
    """When its state changed last; None for one that has not changed since it was created, for a job of another system,
    or of before this was kept.
    """
    times: Times
    """Up to that moment; :meth:`times_at` has what came since."""
    pace: Pace
    engine: TrackingEngine | None = None
    """Who moves it, where it is not a worker of ours."""
    run_at: datetime | None = None
    """When it is released by itself, or was; of a schedule's job, the tick it is for."""

    @property
    def finished(self) -> bool:
        """Is no worker going to touch it any more?"""
        return self.state in FINISHED

    @property
    def fraction(self) -> float:
        """How far it is, from 0 to 1; 1 only when it really is over and well, whatever is counted before.

        While its items are still being planned nobody knows of how many: it stays at 0, and cannot go back.
        """
        if self.state in WELL_ENDED:
            return 1.0
        if self.phase is Phase.BATCHING or not self.progress.total:
            return 0.0
        return min(self.progress.processed / self.progress.total, 0.999)

    def times_at(self, now: datetime) -> Times:
        """How long it has waited, worked and been paused."""
        if self.state_since is not None:
            return self.times.plus(self.state, (now - self.state_since).total_seconds())
        end = self.completed_at or self.canceled_at or now
        start = self.started_at or end
        waiting = Times().plus(JobState.QUEUED, (start - self.created_at).total_seconds())
        return waiting.plus(JobState.RUNNING, (end - start).total_seconds())

    def seconds_left(self, now: datetime) -> float | None:
        """What the rest will take at the recent pace; None where that cannot be known.

        Only a running job gets on, and only one whose plan is complete has a known rest; how long it takes to finalize
        is nobody's to say.
        """
        if self.state.shown_as is not JobState.RUNNING or self.phase is not Phase.PROCESSING:
            return None
        rate = self.pace.items_per_second(now)
        return None if rate is None else (self.progress.total - self.progress.processed) / rate


@dataclass(frozen=True, slots=True)
class Item:
    """One unit of a job's work, as it stands now."""

    id: int
    job_id: UUID
    role: ItemRole
    position: int
    status: ItemStatus
    attempts: int
    deaths: int
    """How often a worker died while it held the item; none of them used up a try."""
    input: JSON
    normalized: JSON
    result: JSON
    last_error: str | None
    error_code: str | None
    traceback: str | None
    locked_by: str | None
    locked_at: datetime | None
    ready_at: datetime | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One transition: from where to where, by whom, why and when."""

    sequence: int
    run: int
    from_state: JobState | None
    to_state: JobState
    actor: Actor
    actor_id: str | None
    reason: str | None
    data: JSON
    at: datetime


class SubmitOutcome(StrEnum):
    """What a submission led to."""

    NEW = "new"
    EXISTING = "existing"
    FOLLOWING = "following"
    CACHED = "cached"


@dataclass(frozen=True, slots=True)
class Submission:
    """The job that answers a submission, and how it came to."""

    job: Job
    answer: SubmitOutcome


class ClaimedItem(NamedTuple):
    """An item in a worker's hands, with the lease that fences what is written about it.

    A tuple, like everything of which there is one for each item: it costs a fifth of a frozen dataclass to make.
    """

    item_id: int
    job_id: UUID
    kind: str
    user_id: str | None
    run: int
    role: ItemRole
    position: int
    attempt: int
    max_retries: int
    input: JSON
    params: JSON
    lease: UUID
    normalized: JSON = None
    not_found_attempts: int = 0
    """How many of the tries before this one ended in NotFound."""
    earlier_not_found: int = 0
    """The same of the tries it had before it was given new ones."""

    @property
    def failed_attempt(self) -> int:
        """Which try this is of those that may fail, from 1: a try that ended in NotFound is none of them."""
        return self.attempt - self.not_found_attempts
