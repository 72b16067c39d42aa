"""The words of the lifecycle: what a job, an item, and an ending can be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Literal

Icon = Literal["hourglass", "turning", "check", "cross", "stop", "pause", "question", "skip"]
Colour = Literal["gray", "blue", "green", "red", "orange"]


class Work(Enum):
    """What becomes of the work of a job in some state."""

    HELD = "held"
    """Not started: somebody has to let it start."""
    FLOWING = "flowing"
    """Workers do it without anybody's help."""
    DONE = "done"
    """All of it ended well."""
    LEFT = "left"
    """No more of it is done, and some did not end well."""


@dataclass(frozen=True, slots=True)
class Look:
    """How people are shown a state, on pages and in the terminal: an icon, a colour and a word, always together."""

    word: str
    icon: Icon
    colour: Colour


class JobState(StrEnum):
    """Where a job stands: **the table of states**, one entry each.

    What each may become is in :mod:`penstock.lifecycle.transitions`. From this table come the CHECK constraint, the
    words of the API, the choices of the command line, and what the pages know. A state that is new names the known one
    it is shown as: it has that one's word in every vocabulary that has none of its own for it. So a new state is one
    entry here and a migration::

        ARCHIVED = "archived", Work.DONE, Look("Archived", "check", "gray"), "kept for the records", "abandoned"
    """

    look: Look
    work: Work
    meaning: str
    _known_as: str | None

    CREATED = (
        "created", Work.HELD, Look("Created", "hourglass", "gray"),
        "recorded, but not let go yet: held back on purpose, or its items are still being written",
    )  # fmt: skip
    QUEUED = (
        "queued", Work.FLOWING, Look("Queued", "hourglass", "gray"),
        "ready, and no worker has claimed anything of this run yet, or it was resumed",
    )  # fmt: skip
    RUNNING = (
        "running", Work.FLOWING, Look("Running", "turning", "blue"),
        "at least one item has been claimed",
    )  # fmt: skip
    RETRYING = (
        "retrying", Work.FLOWING, Look("Waiting to retry", "turning", "orange"),
        "a single-step job failed and waits out its backoff",
    )  # fmt: skip
    PAUSED = (
        "paused", Work.HELD, Look("Paused", "pause", "gray"),
        "the flow is stopped; claimed items finish, no new ones start",
    )  # fmt: skip
    SUCCEEDED = (
        "succeeded", Work.DONE, Look("Completed", "check", "green"),
        "all work is done and finalized; the result waits for its owner",
    )  # fmt: skip
    FAILED = (
        "failed", Work.LEFT, Look("Failed", "cross", "red"),
        "it could not finish",
    )  # fmt: skip
    CANCELED = (
        "canceled", Work.LEFT, Look("Canceled", "stop", "orange"),
        "stopped on purpose",
    )  # fmt: skip
    COMMITTED = (
        "committed", Work.DONE, Look("Committed", "check", "green"),
        "the owner used the result",
    )  # fmt: skip
    ABANDONED = (
        "abandoned", Work.DONE, Look("Abandoned", "check", "gray"),
        "the result was not used in time, or not wanted",
    )  # fmt: skip

    def __new__(
        cls,
        value: str,
        work: Work | None = None,
        look: Look | None = None,
        meaning: str = "",
        known_as: str | None = None,
    ) -> JobState:
        """A state is its text; the rest of its entry are attributes."""
        assert work is not None, f"the entry of {value} is not complete"
        assert look is not None, f"the entry of {value} is not complete"
        state = str.__new__(cls, value)
        state._value_ = value
        state.work = work
        state.look = look
        state.meaning = meaning
        state._known_as = known_as
        return state

    @property
    def shown_as(self) -> JobState:
        """The known state that stands for it where nothing else is said; a known state stands for itself."""
        return self if self._known_as is None else JobState(self._known_as)


ACTIVE = frozenset(state for state in JobState if state.work in (Work.HELD, Work.FLOWING))
"""States in which work is still to come."""

FLOWING = frozenset(state for state in JobState if state.work is Work.FLOWING)
"""States in which workers serve a job: one such job may do the work of a (kind, unique_key), and have followers."""

FINISHED = frozenset(JobState) - ACTIVE
"""States in which no worker touches the job any more."""

WELL_ENDED = frozenset(state for state in JobState if state.work is Work.DONE)
"""States in which all work ended well."""

KILLED_LOOK = JobState.CANCELED.look
"""How a failure is shown when the job was killed."""


class ItemStatus(StrEnum):
    """Where one unit of work stands."""

    look: Look
    meaning: str

    PENDING = "PENDING", Look("Pending", "hourglass", "gray"), "waits to be claimed, for the first time or again"
    PROCESSING = "PROCESSING", Look("Processing", "turning", "blue"), "in a worker's hands, under a lease"
    DONE = "DONE", Look("Done", "check", "green"), "the handler answered; its answer is kept"
    ERROR = "ERROR", Look("Error", "cross", "red"), "it failed and will not be tried again in this run"
    NOT_FOUND = "NOT_FOUND", Look("Not found", "question", "orange"), "what it asked for does not exist"
    SKIPPED = "SKIPPED", Look("Skipped", "skip", "gray"), "there was nothing to do"

    def __new__(cls, value: str, look: Look | None = None, meaning: str = "") -> ItemStatus:
        """A status is its text; the rest of its entry are attributes."""
        assert look is not None, f"the entry of {value} is not complete"
        status = str.__new__(cls, value)
        status._value_ = value
        status.look = look
        status.meaning = meaning
        return status


ENDED_STATUSES = frozenset({ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED})
"""Item statuses that count as processed."""

OPEN_STATUSES = tuple(status for status in ItemStatus if status not in ENDED_STATUSES)
"""Item statuses of work that waits or runs."""


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


class KilledBy(StrEnum):
    """Who or what ended a job early."""

    USER = "user"
    SYSTEM = "system"
    TIMEOUT = "timeout"
    WORKER_CRASH = "worker_crash"
    OOM = "oom"


class TrackingEngine(StrEnum):
    """Who moves a job, where it is not a worker of ours."""

    CELERY = "celery"


class ErrorType(StrEnum):
    """Could the same work succeed another time?"""

    RETRYABLE = "RETRYABLE"
    TERMINAL = "TERMINAL"


class Actor(StrEnum):
    """Who may cause a transition."""

    OWNER = "owner"
    ADMIN = "admin"
    WORKER = "worker"
    SYSTEM = "system"
