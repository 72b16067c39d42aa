"""How many items to claim: as many as fill a slice of time, within bounds."""

from __future__ import annotations

from penstock.worker.control.average import Average
from penstock.worker.control.pressure import Pressure


class ClaimSize:
    """``clamp(target_slice_ms / avg_item_ms × safety, minimum, maximum)``; small at first.

    >>> size = ClaimSize(target_ms=5000, safety=0.7, minimum=1, maximum=1000, first=16)
    >>> size.setting
    16
    >>> size.observe(elapsed_ms=1000, items=10)
    35
    """

    def __init__(self, *, target_ms: float, safety: float, minimum: int, maximum: int, first: int) -> None:
        self._target = target_ms * safety
        self._minimum = minimum
        self._maximum = maximum
        self._average = Average()
        self.setting = max(minimum, min(first, maximum))

    @property
    def average_item_ms(self) -> float | None:
        """What an item takes, with everything that runs beside it."""
        return self._average.value

    def observe(self, *, elapsed_ms: float, items: int) -> int:
        """So many items took so long; the answer is the next claim's size."""
        self._average.observe(elapsed_ms, items=items)
        average = self._average.value
        if average is not None:
            target_items = self._target / average if average > 0 else self._maximum
            self.setting = int(max(self._minimum, min(target_items, self._maximum)))
        return self.setting

    def under(self, pressure: Pressure) -> int:
        """The size to claim under a pressure: half while the machine is short of something, never below the minimum.

        >>> size = ClaimSize(target_ms=5000, safety=0.7, minimum=1, maximum=1000, first=16)
        >>> size.under(Pressure.NONE), size.under(Pressure.MEMORY)
        (16, 8)
        """
        return self.setting if pressure is Pressure.NONE else max(self._minimum, self.setting // 2)
