"""Where outcomes wait to be recorded together."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from penstock.operations.record import ItemResult


class CompletionBuffer:
    """Outcomes, a wake-up, and how many calls are still out.

    The first outcome does not go to the database alone while others are about to finish: the lane waits a little
    for company, but not when nothing else is out, so that a single job is never kept waiting.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._finished: list[ItemResult] = []
        self._out = 0
        self._woken = False

    @property
    def out(self) -> int:
        """Calls handed to the runners that have not been taken from here yet."""
        return self._out

    def hand_out(self, count: int) -> None:
        """So many calls are on their way to a runner."""
        with self._changed:
            self._out += count

    def put(self, ended: Sequence[ItemResult]) -> None:
        """Calls ended."""
        if not ended:
            return
        with self._changed:
            before = len(self._finished)
            self._finished.extend(ended)
            if before == 0 or len(self._finished) == self._out:
                self._changed.notify()

    def wake(self) -> None:
        """There may be something to claim."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def wait_for_wake(self, timeout: float) -> None:
        """Wait for a wake-up alone, and leave it to be taken."""
        with self._changed:
            self._changed.wait_for(lambda: self._woken, timeout)

    def take_wake(self) -> bool:
        """Was there a wake-up since the last time?"""
        with self._changed:
            woken, self._woken = self._woken, False
            return woken

    def take(self, *, timeout: float, gather: float, enough: int) -> list[ItemResult]:
        """Wait for outcomes or a wake-up; once one is there, a little for more."""
        with self._changed:
            self._changed.wait_for(lambda: self._finished or self._woken, timeout)
            if self._finished and not self._woken and gather > 0:
                deadline = time.monotonic() + gather
                while len(self._finished) < min(self._out, enough) and not self._woken:
                    left = deadline - time.monotonic()
                    if left <= 0 or not self._changed.wait(left):
                        break
            finished, self._finished = self._finished, []
            self._out -= len(finished)
            return finished
