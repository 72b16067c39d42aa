"""How quickly the database answers, as far as this process has seen."""

from __future__ import annotations

import threading

_MEMORY = 0.05


class Latency:
    """Smoothed times of transactions that write: the wait for a connection or the write lock, and the whole.

    Written to by many threads without a lock: a lost sample of thousands is no loss.
    """

    __slots__ = ("_own", "latency_ms", "wait_ms")

    def __init__(self) -> None:
        self.wait_ms = 0.0
        self.latency_ms = 0.0
        self._own = threading.local()

    @property
    def own_wait_ms(self) -> float:
        """How long the last transaction of this thread waited: others may wait for us meanwhile."""
        return getattr(self._own, "wait_ms", 0.0)

    def observe(self, *, wait: float, whole: float) -> None:
        """One transaction, in seconds."""
        self._own.wait_ms = wait * 1000.0
        self.wait_ms += _MEMORY * (wait * 1000.0 - self.wait_ms)
        self.latency_ms += _MEMORY * (whole * 1000.0 - self.latency_ms)
