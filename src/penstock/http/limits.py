"""Rate limits: a token bucket for each caller, in this process's memory."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.errors import TooManyRequests

_MAX_KEPT = 10_000


class RateLimit:
    """So many requests a minute for each key, in a burst or spread out.

    >>> limit = RateLimit(60, "requests", now=lambda: 0.0)
    >>> for _ in range(60):
    ...     limit.take("ada")
    >>> limit.take("ada")
    Traceback (most recent call last):
    ...
    penstock.errors.TooManyRequests: more than 60 requests a minute; retry in 1 s
    """

    def __init__(self, per_minute: int, what: str, *, now: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60.0
        self._what = what
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._changing = threading.Lock()

    def take(self, key: str) -> None:
        """One more for ``key``; :class:`TooManyRequests` when that is too many."""
        now = self._now()
        with self._changing:
            tokens, since = self._buckets.pop(key, (self._capacity, now))
            tokens = min(self._capacity, tokens + (now - since) * self._per_second)
            is_allowed = tokens >= 1.0
            self._buckets[key] = (tokens - 1.0 if is_allowed else tokens, now)
            while len(self._buckets) > _MAX_KEPT:
                # Whoever has not asked for longest: their bucket is full again, or nearly.
                self._buckets.popitem(last=False)
        if not is_allowed:
            wait = (1.0 - tokens) / self._per_second
            raise TooManyRequests(
                f"more than {self._capacity:g} {self._what} a minute; retry in {wait:.0f} s",
                retry_after=wait,
            )


class Slots:
    """A bound on how many run at a time, for requests that keep a thread of the server busy."""

    def __init__(self, count: int, what: str) -> None:
        self._count = count
        self._what = what
        self._free = threading.Semaphore(count)

    @contextmanager
    def take(self) -> Iterator[None]:
        """One of them for the length of a ``with`` block; :class:`TooManyRequests` when none is free."""
        if not self._free.acquire(blocking=False):
            raise TooManyRequests(
                f"{self._count} {self._what} are running on this server already; retry in a moment", retry_after=1.0
            )
        try:
            yield
        finally:
            self._free.release()
