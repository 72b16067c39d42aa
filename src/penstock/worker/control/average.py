"""How long an item takes, averaged over those seen."""

from __future__ import annotations


class Average:
    """An exponentially weighted average over items; None until the first sample.

    >>> average = Average()
    >>> average.observe(100.0, items=10)
    >>> average.value
    10.0
    """

    def __init__(self, memory: int = 200) -> None:
        self._memory = memory
        self.value: float | None = None

    def observe(self, total: float, *, items: int) -> None:
        """So many items took ``total`` together."""
        if items <= 0 or total < 0:
            return
        each = total / items
        if self.value is None:
            self.value = each
            return
        weight = min(1.0, items / self._memory)
        # A single sample still counts for something when the memory is long.
        weight = max(weight, 0.05)
        self.value += weight * (each - self.value)
