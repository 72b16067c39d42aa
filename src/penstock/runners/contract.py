"""What a runner is: something that runs calls beside each other and tells how each ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class StopFlag:
    """Whether a call is still wanted; a handler in a thread looks at it, everything else is stopped for real."""

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
    """When, by our own watch, the lease behind it wants renewing."""


EndedCall = tuple[Call, Any, BaseException | None]
"""A call with what it returned, or with what it raised."""

Ended = Callable[[Sequence[EndedCall]], None]
"""Told of every call exactly once, from whichever thread it ended in; it must not block."""


class Runner(Protocol):
    """Runs calls, at most ``concurrency`` at a time."""

    concurrency: int

    def start(self, calls: Sequence[Call]) -> None:
        """Take these calls; those that cannot run yet wait their turn."""

    def resize(self, concurrency: int) -> None:
        """Run at most so many at a time from now on; what runs already is not interrupted."""

    def stop(self, calls: Collection[Call]) -> None:
        """End these calls: those that wait never start, those that run are interrupted. Each ends with ``Stopped``."""

    def stop_waiting(self) -> None:
        """End all calls that have not started."""

    def close(self) -> None:
        """Let go of threads and processes; what still runs is not waited for."""
