"""Named points a worker passes, for tests to wait on; in production nobody listens and they cost nothing."""

from __future__ import annotations

import threading
from collections import Counter


class TestSignals:
    """How often each named point was passed."""

    def __init__(self) -> None:
        self._passes: Counter[str] = Counter()
        self._condition = threading.Condition()
        self._listening = False

    def listen(self) -> None:
        """Count from now on."""
        self._listening = True

    def announce(self, name: str) -> None:
        """A point was passed."""
        if self._listening:
            with self._condition:
                self._passes[name] += 1
                self._condition.notify_all()

    def count(self, name: str) -> int:
        """How often it was passed."""
        with self._condition:
            return self._passes[name]

    def wait(self, name: str, times: int = 1, timeout: float = 30.0) -> bool:
        """Wait until it was passed so many times; False when that took too long."""
        with self._condition:
            return self._condition.wait_for(lambda: self._passes[name] >= times, timeout)
