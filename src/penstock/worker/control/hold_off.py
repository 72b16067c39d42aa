"""How long to pause claims while nearly every item is put off.

Fewer at once does not slow down calls that are refused at once: one slot still makes thousands of them a second, and a
provider that counts refused calls, too, then never lets anybody in again. So a window in which nearly everything was
put off is followed by a pause, twice as long each time, until something gets through.
"""

from __future__ import annotations

_NEARLY_ALL = 0.95
_FEWEST = 10
_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 4.0


class HoldOff:
    """Seconds without a claim.

    >>> pause = HoldOff()
    >>> [pause.observe(items=100, put_off=share) for share in (60, 100, 100, 60, 100)]
    [0.0, 0.5, 1.0, 0.0, 0.5]
    """

    def __init__(self) -> None:
        self.setting = 0.0

    def observe(self, *, items: int, put_off: int) -> float:
        """Take in one window; the answer is how long to wait before the next claim."""
        if items < _FEWEST or put_off < _NEARLY_ALL * items:
            self.setting = 0.0
        else:
            self.setting = min(max(_FIRST_SECONDS, 2.0 * self.setting), _LONGEST_SECONDS)
        return self.setting
