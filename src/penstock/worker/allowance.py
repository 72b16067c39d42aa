"""How much a lane may claim that works for a while only, in a process that somebody else has started."""

from __future__ import annotations

import time
from collections.abc import Callable


class Allowance:
    """So many items, claimed within so many seconds, and only as long as there is more.

    >>> now = 0.0
    >>> allowance = Allowance("somebody", items=10, seconds=5.0, clock=lambda: now)
    >>> allowance.note_claim(4, any_more=True)
    >>> allowance.items_left
    6
    >>> now = 5.0
    >>> allowance.items_left
    0
    """

    def __init__(self, holder: str, *, items: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.holder = holder
        """In whose name items are claimed."""
        self.claimed_items = 0
        """How many items were."""
        self._items = items
        self._clock = clock
        self._until = clock() + seconds

    @property
    def items_left(self) -> int:
        """How many items may be claimed now."""
        return self._items if self._items and self._clock() < self._until else 0

    def note_claim(self, items: int, *, any_more: bool) -> None:
        """So many items were claimed; when there was no more, nothing else is claimed."""
        self.claimed_items += items
        self._items = max(0, self._items - items) if any_more else 0

    def end(self) -> None:
        """Claim nothing more."""
        self._items = 0
