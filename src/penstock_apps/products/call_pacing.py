"""How fast one retailer is asked, how long it is left alone, and when it is given up.

A retailer that refuses (429), fails (5xx) or does not answer is in trouble until an answer is good again. It is asked
again now and then, later and later, and everybody else waits: its trouble is not the fault of any item. After
``outage_seconds`` without a good answer nobody waits any longer: a job ends although a retailer never comes back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable

from penstock.worker import ProviderDelay

_MOMENT = 1.0


class CallPacing:
    """Keeps calls to one retailer as far apart as it likes them, and stops them while it is in trouble.

    One retailer is asked from the loops of several workers of a process, so there is a lock.
    """

    def __init__(
        self,
        calls_per_second: float,
        longest_wait: float,
        outage_seconds: float,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._delay = ProviderDelay(calls_per_second)
        self._longest_wait = longest_wait
        self._outage_seconds = outage_seconds
        self._now = now
        self._lock = threading.Lock()

    @property
    def gauges(self) -> dict[str, float]:
        """How often it refuses or fails, and how far apart calls are just now: until the next one, if it is closed."""
        with self._lock:
            return {
                "throttle_rate": round(self._delay.throttle_rate, 4),
                "delay_seconds": round(max(self._delay.setting, self._delay.closed_for(self._now())), 4),
            }

    @property
    def is_in_trouble(self) -> bool:
        """Has nothing good been heard of it since it refused or failed?"""
        with self._lock:
            return self._delay.troubled_for(self._now()) is not None

    @property
    def is_outage_over_long(self) -> bool:
        """Has that been so for longer than anybody should wait?"""
        with self._lock:
            return self._outlasts(self._now())

    @property
    def is_given_up(self) -> bool:
        """Is it so, and has it not said when to come back either?"""
        with self._lock:
            now = self._now()
            return self._outlasts(now) and not self._delay.asked_for(now)

    @property
    def closed_for(self) -> float:
        """Seconds for which it is left alone."""
        with self._lock:
            return self._delay.closed_for(self._now())

    async def wait(self, sleep: Callable[[float], Awaitable[None]]) -> float | None:
        """Wait for our turn; seconds to come back in where that is longer than anybody should wait here."""
        while True:
            with self._lock:
                now = self._now()
                ready_in = self._delay.ready_in(now)
                if ready_in > self._patience(now):
                    return ready_in
                self._delay.take_slot(now)
            if ready_in <= 0:
                return None
            await sleep(ready_in)
            if not self.closed_for:  # it may have got into trouble while we waited for our turn
                return None

    def learn(self, status: int | None, retry_after: float | None = None) -> None:
        """Learn from an answer, or from none: trouble makes calls rarer, for as long as the retailer says."""
        with self._lock:
            self._delay.note_answer(self._now(), status=status, retry_after=retry_after)

    def _patience(self, now: float) -> float:
        """Seconds that are waited here. In trouble that is a moment: going to the database and back takes as long."""
        in_trouble = self._delay.closed_for(now) or self._delay.troubled_for(now) is not None
        return min(_MOMENT, self._longest_wait) if in_trouble else self._longest_wait

    def _outlasts(self, now: float) -> bool:
        troubled_for = self._delay.troubled_for(now)
        return troubled_for is not None and troubled_for >= self._outage_seconds
