"""Where outcomes wait to be recorded together."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from penstock.operations.record import ItemResult


class CompletionBuffer:
    """Outcomes, a wake-up, and how many calls are still out.

    The first outcome does not go to the database alone while others are about to finish: the lane waits a moment
    for company, but not when nothing else is out, so that a single job is never kept waiting.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._results: list[ItemResult] = []
        self._out = 0
        self._is_woken = False

    @property
    def out(self) -> int:
        """Calls handed to the runners that have not been taken from here yet."""
        return self._out

    def hand_out(self, count: int) -> None:
        """So many calls are on their way to a runner."""
        with self._condition:
            self._out += count

    def put(self, results: Sequence[ItemResult]) -> None:
        """Calls ended."""
        if not results:
            return
        with self._condition:
            before = len(self._results)
            self._results.extend(results)
            if before == 0 or len(self._results) == self._out:
                self._condition.notify()

    def wake(self) -> None:
        """There may be something to claim."""
        with self._condition:
            self._is_woken = True
            self._condition.notify()

    def wait_for_wake(self, timeout: float) -> None:
        """Wait for a wake-up alone, and leave it to be taken."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_woken, timeout)

    def take_wake(self) -> bool:
        """Was there a wake-up since the last time?"""
        with self._condition:
            was_woken, self._is_woken = self._is_woken, False
            return was_woken

    def take(self, *, timeout: float, gather: float, enough: int) -> list[ItemResult]:
        """Wait for outcomes or a wake-up; once one is there, a little for more."""
        with self._condition:
            self._condition.wait_for(lambda: self._results or self._is_woken, timeout)
            if self._results and not self._is_woken and gather > 0:
                deadline = time.monotonic() + gather
                while len(self._results) < min(self._out, enough) and not self._is_woken:
                    remaining = deadline - time.monotonic()
                    if remaining <= 0 or not self._condition.wait(remaining):
                        break
            results, self._results = self._results, []
            self._out -= len(results)
            return results
