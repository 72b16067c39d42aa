"""The clock: the database's own in production, one that a test moves by hand.

In production the database says: every statement compares and writes the database's own clock, so machines that
disagree about the time cannot take each other's leases. A test holds the clock instead and moves it by hand.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

__all__ = ["Clock", "DatabaseClock", "ManualClock"]


class Clock(Protocol):
    """Either a fixed moment, or None for the database's own clock."""

    def held(self) -> datetime | None:
        """The moment to use in statements; None for the database's own clock."""


class DatabaseClock:
    """The clock of production: the database's own."""

    def held(self) -> datetime | None:
        """Always None: the database's own clock is used."""
        return None


class ManualClock:
    """A clock that stands still until a test moves it.

    >>> clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    >>> clock.advance(90)
    >>> clock.held().isoformat()
    '2026-01-01T00:01:30+00:00'
    """

    def __init__(self, moment: datetime | None = None) -> None:
        self._moment = moment or datetime(2026, 1, 1, tzinfo=UTC)

    def held(self) -> datetime:
        """The moment the test has set."""
        return self._moment

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        self._moment += timedelta(seconds=seconds)
