"""Turns of a lane that failed: counted, logged, and how long to wait before the next one.

Between two tries there is more and more time, but a second at most while the database is away: many jobs may wait
behind it, and somebody behind each of them.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import structlog

from penstock.errors import PenstockError, StoreRefused, StoreUnavailable

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 30.0
_LONGEST_WAIT_FOR_STORE = 1.0
_log = structlog.get_logger("penstock.lane")


class Setback(NamedTuple):
    """A turn that failed."""

    wait: float
    """How long to wait before the next one."""
    is_away: bool
    """Was it for want of the database?"""


class Setbacks:
    """Those of one lane."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.in_a_row = 0
        """How many turns have failed since the last one that did not."""
        self.store_errors = 0
        """How often the database failed the lane, since the worker began."""

    def forget(self) -> None:
        """A turn went well."""
        self.in_a_row = 0

    def note(self, error: BaseException) -> Setback:
        """A turn failed."""
        self.in_a_row += 1
        self.store_errors += isinstance(error, StoreUnavailable | StoreRefused)
        is_away = isinstance(error, StoreUnavailable)
        longest = _LONGEST_WAIT_FOR_STORE if is_away else _LONGEST_WAIT
        wait = min(longest, _FIRST_WAIT * 2.0 ** min(self.in_a_row, 10)) * (0.5 + random.random() / 2)
        _log.warning(
            "the lane's work failed; trying again",
            kind=self._kind,
            error=str(error),
            wait=wait,
            exc_info=None if isinstance(error, PenstockError) else error,
        )
        return Setback(wait, is_away)
