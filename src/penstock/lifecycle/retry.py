"""When a failed item is tried again."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from penstock.errors import ConfigurationError
from penstock.lifecycle.quantities import seconds

_SPELLING = re.compile(r"^\s*(\S+)\s+(fixed|exponential)(?:\s+up\s+to\s+(\S+))?\s*$")


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait before try n+1: always the same, or doubling up to a bound, with jitter.

    >>> Backoff.of("1s fixed").delay(3)
    1.0
    >>> Backoff.of("2s exponential up to 1m").bound(10)
    60.0
    """

    first: float
    factor: float = 1.0
    max_seconds: float = 3600.0

    @classmethod
    def of(cls, spelling: str | Backoff) -> Backoff:
        """Read ``"1s fixed"`` or ``"1s exponential up to 5m"``."""
        if isinstance(spelling, Backoff):
            return spelling
        match = _SPELLING.match(spelling)
        if match is None:
            raise ConfigurationError(f"{spelling!r} is not a backoff; write '1s fixed' or '1s exponential up to 5m'")
        first = seconds(match[1])
        max_seconds = seconds(match[3]) if match[3] else max(first, 3600.0)
        return cls(first, 1.0 if match[2] == "fixed" else 2.0, max_seconds)

    def bound(self, attempt: int) -> float:
        """The longest wait after the given attempt (1 is the first)."""
        exponent = min(max(attempt, 1) - 1, 64)
        return min(self.first * self.factor**exponent, self.max_seconds)

    def delay(self, attempt: int, retry_after: float | None = None, chance: random.Random | None = None) -> float:
        """The wait after ``attempt``: exact when fixed, spread over its upper half when growing.

        What the other side asked for (``retry_after``) is the least we wait.
        """
        bound = self.bound(attempt)
        if self.factor != 1.0:
            bound *= 0.5 + (chance or _CHANCE).random() / 2
        return max(bound, min(retry_after, 86400.0)) if retry_after else bound


_CHANCE = random.Random()
