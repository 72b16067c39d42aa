"""What a runner is: something that runs calls beside each other and tells how each ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol


class StopFlag:
    """Whether a call was stopped; a handler in a thread checks it, all others are interrupted."""

    set = False


@dataclass(slots=True, eq=False)
class Call:
    """One call to make: a function, its argument, how long it may take, and whose it is."""

    owner: Any
    function: Callable[[Any], Any]
    argument: Any
    timeout: float | None = None
    stop: StopFlag = field(default_factory=StopFlag)
    runner: Runner | None = None
    renew_at: float = 0.0
    """When its lease should be renewed, by the monotonic clock."""
    deadline: float | None = None
    """When it has to have ended, by the monotonic clock; None before it begins, and without a time limit."""
    _ends: list[None] = field(default_factory=lambda: [None])

    def set_deadline(self) -> None:
        """Its time begins; for a plan, begins again with each item."""
        if self.timeout is not None:
            self.deadline = time.monotonic() + self.timeout

    @contextmanager
    def off_the_clock(self) -> Iterator[None]:
        """Its time stops while we write to the database for it; it begins again after that."""
        if self.timeout is not None:
            self.deadline = math.inf
        yield
        self.set_deadline()

    def look_again_in(self, now: float) -> float:
        """When its deadline may have passed; not later than its time limit, for a clock that stands may go on."""
        if self.deadline is None or self.timeout is None:
            return math.inf
        return max(0.001, min(self.deadline - now, self.timeout))

    @property
    def is_open(self) -> bool:
        """Is its end still unknown?"""
        return bool(self._ends)

    def end(self) -> bool:
        """Mark it as ended: True for the first caller. A runner, the watchdog and a stopping worker may all try."""
        try:
            self._ends.pop()
        except IndexError:
            return False
        return True

    def too_late(self) -> str:
        """The message for a call past its deadline."""
        return f"the handler ran longer than {self.timeout:g} s"


@dataclass(frozen=True, slots=True)
class Unread:
    """An answer that came in bytes: reading it may run the handler's own code, so whoever concludes does it."""

    read: Callable[[], tuple[Any, BaseException | None]]


EndedCall = tuple[Call, Any, BaseException | None]
"""A call with what it returned, or with what it raised."""

OnEnded = Callable[[Sequence[EndedCall]], None]
"""Told of every call that ended, from whichever thread it ended in; of one that was abandoned it may be told late."""


class Runner(Protocol):
    """Runs calls, at most ``concurrency`` at a time."""

    concurrency: int

    def start(self, calls: Sequence[Call]) -> None:
        """Take these calls; those that cannot run yet wait in the queue."""

    def resize(self, concurrency: int) -> None:
        """Run at most so many at a time from now on; what runs already is not interrupted."""

    def stop(self, calls: Collection[Call]) -> None:
        """End these calls: those that wait never start, those that run are interrupted. Each ends with ``Stopped``."""

    def start_waiting(self) -> None:
        """Start what waits: called now and then, in case a thread or a process could not be started before."""

    def stop_waiting(self) -> None:
        """End all calls that have not started."""

    def calls(self) -> Collection[Call]:
        """The calls it holds: they wait, run, or are just being reported."""

    def abandon(self, call: Call) -> None:
        """Give up this call: its slot is free again, though it may still run."""

    @property
    def abandoned(self) -> int:
        """Calls that were given up and still run."""

    @property
    def is_exhausted(self) -> bool:
        """Are so many calls given up and still running that no other can start?"""

    def close(self) -> None:
        """Release threads and processes; what still runs is not waited for."""
