"""Limits on what one caller may ask: a token bucket for each, and so many at a time, in this process's memory."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address

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

    def give_back(self, key: str, part: float) -> None:
        """Part of what ``key`` took was not used."""
        with self._changing:
            bucket = self._buckets.get(key)
            if bucket is not None:
                tokens, since = bucket
                self._buckets[key] = (min(self._capacity, tokens + part), since)


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


class SlotsPerKey:
    """A bound on how many one caller has at a time, for answers that stay open.

    >>> slots = SlotsPerKey(1, "live streams", code="TOO_MANY_STREAMS")
    >>> with slots.take("ada"), slots.take("bob"):
    ...     with slots.take("ada"): pass
    Traceback (most recent call last):
    ...
    penstock.errors.TooManyRequests: you have 1 live streams open already; close one, or retry in a moment
    """

    def __init__(self, count: int, what: str, *, code: str) -> None:
        self._count = count
        self._what = what
        self._code = code
        self.counts: Counter[str] = Counter()
        """How many each caller has now."""
        self._changing = threading.Lock()

    @contextmanager
    def take(self, key: str) -> Iterator[None]:
        """One of those of ``key`` for the length of a ``with`` block; :class:`TooManyRequests` when none is free."""
        with self._changing:
            if self.counts[key] >= self._count:
                raise TooManyRequests(
                    f"you have {self._count} {self._what} open already; close one, or retry in a moment",
                    retry_after=1.0,
                    code=self._code,
                )
            self.counts[key] += 1
        try:
            yield
        finally:
            with self._changing:
                self.counts[key] -= 1
                if not self.counts[key]:
                    del self.counts[key]


def network_of(host: str) -> str:
    """What one client has: an address of IPv4, or the first 64 bits of one of IPv6.

    >>> network_of("203.0.113.7"), network_of("2001:db8::1:2:3:4"), network_of("::ffff:203.0.113.7")
    ('203.0.113.7', '2001:db8::', '203.0.113.7')
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Address(int(address) >> 64 << 64))
