"""How long a job has taken, and how fast it goes.

**Taken.** Until it is over, a job waits, works or is paused: the state it is in says which. Each change of its state
adds the seconds since the change before to one of the three (``store/queries/change_state.py``), so that a pause, a
resume or a new run begins nothing anew. What passes between the end of one run and the next is none of the three.

**Left.** What is left is divided by the pace of the recent past: how many items ended in how many seconds. With each
batch of outcomes the batches before it count a little less (``store/queries/settle.py``): what is older than
:data:`RECENT_SECONDS` *and* further back than :data:`RECENT_ITEMS` items hardly matters. A job that is resumed or
reprocessed has no recent past, and says nothing until it has one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from penstock.lifecycle.states import ACTIVE, JobState

TIME_OF: Mapping[JobState, str] = {
    state: {JobState.RUNNING: "active", JobState.PAUSED: "paused"}.get(state.shown_as, "waiting")
    for state in JobState
    if state in ACTIVE
}
"""Which time passes in a state; none in those of a job that is over."""

RECENT_SECONDS = 30.0
RECENT_ITEMS = 10.0
_ENOUGH_SECONDS = 5.0
_ENOUGH_ITEMS = 2.0
"""Three, of which the first ones count a little less."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a job's life before its end, by what it did.

    >>> Times(waiting=2.0, active=10.0).plus(JobState.PAUSED, 5.0)
    Times(waiting=2.0, active=10.0, paused=5.0)
    """

    waiting: float = 0.0
    """Recorded, in the queue, or between two tries."""
    active: float = 0.0
    """Running."""
    paused: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.waiting + self.active + self.paused

    def plus(self, state: JobState, seconds: float) -> Times:
        """With some more seconds in a state; a clock that was set back takes none away."""
        name = TIME_OF.get(state)
        return self if name is None else replace(self, **{name: getattr(self, name) + max(seconds, 0.0)})


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a job goes: so many items ended in so many seconds, the last ones at ``at``."""

    items: float = 0.0
    seconds: float = 0.0
    at: datetime | None = None

    def items_per_second(self, now: datetime) -> float | None:
        """None while too little has ended to know. Where nothing ends for long, that silence is the recent past.

        >>> from datetime import UTC
        >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
        >>> Pace(40.0, 20.0, noon).items_per_second(noon), Pace(1.0, 20.0, noon).items_per_second(noon)
        (2.0, None)
        """
        if self.at is None or self.items < _ENOUGH_ITEMS or self.seconds < _ENOUGH_SECONDS:
            return None
        return self.items / max(self.seconds, (now - self.at).total_seconds())
