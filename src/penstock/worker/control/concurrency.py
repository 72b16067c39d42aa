"""How many items run at once: a little more while it helps, much less on errors and throttling.

Additive increase, multiplicative decrease, with five things added:

- **A cool-down.** The window after a decrease still holds calls from before it, so it cannot decrease again: one burst
  is one decrease. A window in which nearly everything was refused is no burst: it leaves a quarter, and the next one
  counts, because a pause lies between the two (:mod:`penstock.worker.control.hold_off`).
- **What went well.** The highest setting that was not refused is remembered, too. A refusal above it leads back to it,
  and so does the first good window after a pause. A refusal at it, or items of another cost, make it worth nothing.
- **A ceiling.** The setting that went wrong is remembered. Growth comes back to one step below it and waits there;
  then it tries the ceiling again, later and later while that keeps failing. Without it the setting would saw up and
  down for ever under a provider's limit. A ceiling is forgotten when what one slot gets done has halved or doubled:
  it was found for items of another cost.
- **A longer stride.** While no ceiling is known, each step that helped doubles the next one, so a long way up is a
  matter of a few windows.
- **A look at the throughput.** A step that brought less than 3 % more is taken back, and becomes the ceiling: handlers
  that share a processor gain nothing by being more. A step is at least a sixteenth of the setting, so one that helps
  in proportion brings 6 %, and 3 % tells the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ConfigurationError
from penstock.worker.control.pressure import Pressure

_THROTTLED_SHARE = 0.05
_NEARLY_ALL = 0.95
_SPIKE_FACTOR = 3.0
_SPIKE_MARGIN = 0.1
_SPIKE_ERRORS = 3
_BASELINE_MEMORY = 0.1
_WORTH_IT = 1.03
_OTHER_PACE = 2.0
_FIRST_PATIENCE = 4
_PATIENCE_WHEN_SHUT_OUT = 16
_LONGEST_PATIENCE = 64
_ITEMS_PER_SLOT = 2
"""A setting is judged when each of its slots has ended so many items: the first of them began under the one before."""


@dataclass(frozen=True, slots=True)
class ConcurrencySample:
    """One window: items that ended, how many of these were throttled or failed, and whether work waited for a slot.

    ``throttled`` are answers 429 and 5xx; ``errors`` are the other failures.
    """

    items: int
    elapsed_seconds: float
    throttled: int = 0
    errors: int = 0
    waiting: bool = True
    pressure: Pressure = Pressure.NONE


class Concurrency:
    """Slots in use, between ``minimum`` and ``maximum``; a shortage of processor time never takes it below ``cores``.

    >>> slots = Concurrency(minimum=1, maximum=32, first=4)
    >>> slots.observe(ConcurrencySample(items=40, elapsed_seconds=1.0))
    6
    >>> slots.observe(ConcurrencySample(items=60, elapsed_seconds=1.0, throttled=20))
    4
    """

    def __init__(self, *, minimum: int = 1, maximum: int, first: int, cores: int = 1) -> None:
        if not 1 <= minimum <= maximum:
            raise ConfigurationError(f"minimum is {minimum} and maximum is {maximum}; write 1 <= minimum <= maximum")
        self._minimum = minimum
        self._maximum = maximum
        self._cores = cores
        self._step = max(1, maximum // 16)
        self._stride = 1
        self._setting = max(minimum, min(first, maximum))
        self._cooling = False
        self._ceiling: int | None = None
        self._ceiling_pace: float | None = None
        self._fine: tuple[int, float] | None = None
        self._shut_out = False
        self._pace: float | None = None
        self._patience = _FIRST_PATIENCE
        self._waited_windows = 0
        self._error_baseline: float | None = None
        self._good = 0
        self._measured_items = 0
        self._seconds = 0.0
        self._stepped_from: tuple[int, float] | None = None

    @property
    def setting(self) -> int:
        """How many items may run at once."""
        return self._setting

    def observe(self, sample: ConcurrencySample) -> int:
        """Take in one window; the answer is the setting for the next."""
        refused_share = sample.throttled / sample.items if sample.items > 0 else 0.0
        spike = self._is_spike(sample)
        self._remember_errors(sample)
        if refused_share > _NEARLY_ALL:
            self._give_way()
        elif self._cooling or self._shut_out:
            self._cooling = self._shut_out = False
        elif refused_share > _THROTTLED_SHARE:
            self._went_wrong(self._last_fine() or self._setting // 2)
        elif spike or sample.pressure is not Pressure.NONE:
            self._fine = None
            self._pace = self._pace or sample.items / max(sample.elapsed_seconds, 1e-6) / self._setting
            floor = min(self._cores, self._setting) if sample.pressure is Pressure.CPU and not spike else 1
            self._went_wrong(max(floor, self._setting // 2 if spike else self._setting * 3 // 4))
        else:
            self._measure(sample)
        return self._setting

    # What is wrong --------------------------------------------------------------------------------------------------

    def _give_way(self) -> None:
        """Of such windows only the first says something about the setting; the next ones still suffer from it."""
        if not self._shut_out:
            self._shut_out = True
            self._forget_what_is_not_fine()
            self._put_ceiling(self._setting)
            self._patience = max(self._patience, _PATIENCE_WHEN_SHUT_OUT)
        self._move(self._setting // 4)

    def _last_fine(self) -> int | None:
        """The highest setting that went well, if there is one below this one, which did not."""
        self._forget_what_is_not_fine()
        return None if self._fine is None else self._fine[0]

    def _forget_what_is_not_fine(self) -> None:
        if self._fine is not None and self._fine[0] >= self._setting:
            self._fine = None

    def _is_spike(self, sample: ConcurrencySample) -> bool:
        """Far more errors than this kind usually has; a kind whose items often fail is not slowed for it."""
        if self._error_baseline is None or sample.errors < _SPIKE_ERRORS or sample.items <= 0:
            return False
        return sample.errors / sample.items > _SPIKE_FACTOR * self._error_baseline + _SPIKE_MARGIN

    def _remember_errors(self, sample: ConcurrencySample) -> None:
        if sample.items <= 0:
            return
        share = sample.errors / sample.items
        if self._error_baseline is None:
            self._error_baseline = share
        else:
            self._error_baseline += _BASELINE_MEMORY * (share - self._error_baseline)

    def _went_wrong(self, lower: int) -> None:
        if lower < self._setting:
            self._put_ceiling(self._setting)
        self._move(lower)
        self._cooling = True

    def _put_ceiling(self, at: int) -> None:
        # The same ceiling met again: be more patient. A lower one is news, and is tried again soon.
        again = self._ceiling is not None and at >= self._ceiling
        self._patience = min(2 * self._patience, _LONGEST_PATIENCE) if again else _FIRST_PATIENCE
        self._stride = 1
        self._ceiling = at
        self._ceiling_pace = self._pace
        self._waited_windows = 0

    # What it brings -------------------------------------------------------------------------------------------------

    def _measure(self, sample: ConcurrencySample) -> None:
        if self._ceiling is not None:
            self._waited_windows += 1
        if not sample.waiting:
            # There was too little work to fill the slots: the throughput says nothing about them.
            self._forget_measures()
            return
        self._good += max(0, sample.items - sample.throttled - sample.errors)
        self._measured_items += max(0, sample.items)
        self._seconds += max(0.0, sample.elapsed_seconds)
        if self._measured_items < _ITEMS_PER_SLOT * self._setting or self._seconds <= 0:
            return
        rate = self._good / self._seconds
        came_from, self._stepped_from = self._stepped_from, None
        if came_from is not None and rate < came_from[1] * _WORTH_IT:
            self._put_ceiling(self._setting)
            self._move(came_from[0])
            return
        self._pace = self._measured_items / self._seconds / self._setting  # items that fail cost as much
        was_tried = came_from is not None and self._ceiling is not None and self._setting >= self._ceiling
        if was_tried or self._is_other_pace(self._ceiling_pace):
            self._ceiling = self._ceiling_pace = None
            self._patience = _FIRST_PATIENCE
        elif came_from is not None and self._ceiling is None:
            self._stride *= 2
        if self._fine is None or self._fine[0] < self._setting or self._is_other_pace(self._fine[1]):
            self._fine = (self._setting, self._pace)
        self._increase(rate)

    def _is_other_pace(self, known_pace: float | None) -> bool:
        return (
            known_pace is not None
            and self._pace is not None
            and not known_pace / _OTHER_PACE <= self._pace <= known_pace * _OTHER_PACE
        )

    def _increase(self, rate: float) -> None:
        here = self._setting
        # Never more than twice what it was: from one slot, a step for thirty is a leap.
        above = min(here + min(self._step * self._stride, here), self._maximum)
        if self._fine is not None:
            above = max(above, self._fine[0])
        if self._ceiling is not None and above >= self._ceiling and self._waited_windows < self._patience:
            above = max(here, min(above, self._ceiling - min(self._step, here)))
        self._move(above)
        if self._setting > here:
            self._stepped_from = (here, rate)

    def _forget_measures(self) -> None:
        self._good = self._measured_items = 0
        self._seconds = 0.0
        self._stepped_from = None

    def _move(self, to: int) -> None:
        self._setting = max(self._minimum, min(to, self._maximum))
        self._forget_measures()
