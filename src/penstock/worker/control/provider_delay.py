"""When the next call to a provider may start: by its rate, its Retry-After and its refusals.

Keep one for each provider (a domain, an API key). It does not sleep and has no clock: the time, in seconds of any clock
that does not jump, is an argument. It is not thread-safe; calls from several threads need a lock around it.
"""

from __future__ import annotations

import math
import random

from penstock.errors import ConfigurationError

_REFUSAL_STATUSES = frozenset({429, 503})
_MEMORY = 0.05
_SHRINK = 0.8
_FORGOTTEN_DELAY = 0.001


class ProviderDelay:
    """Spaces the calls to one provider.

    >>> provider = ProviderDelay(calls_per_second=10.0)
    >>> provider.take_slot(now=0.0), provider.take_slot(now=0.0)
    (0.0, 0.1)
    >>> provider.note_answer(now=0.2, status=429, retry_after=30.0)
    0.1
    >>> provider.ready_in(now=10.2)
    20.0

    ``calls_per_second`` is the most the provider allows; 0 means that it did not say. ``first_delay`` is the spacing
    after a first refusal without Retry-After; it doubles with each refusal that follows, up to ``longest_delay``.
    ``longest_wait`` bounds what a Retry-After may ask for. ``chance`` makes the jitter; pass a seeded one in tests.
    """

    def __init__(
        self,
        calls_per_second: float = 0.0,
        *,
        first_delay: float = 0.5,
        longest_delay: float = 60.0,
        longest_wait: float = 3600.0,
        chance: random.Random | None = None,
    ) -> None:
        if not 0.0 <= calls_per_second < math.inf:
            raise ConfigurationError(f"calls_per_second is {calls_per_second}; write 0 for no limit, or a rate above 0")
        if not 0.0 < first_delay <= longest_delay:
            raise ConfigurationError(
                f"first_delay is {first_delay} and longest_delay is {longest_delay}; write 0 < first <= longest"
            )
        self._least_spacing = 1.0 / calls_per_second if calls_per_second else 0.0
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._longest_wait = longest_wait
        self._chance = chance or random.Random()
        self._delay = 0.0
        self._next_at = -math.inf
        self._closed_until = -math.inf
        self._throttle_rate = 0.0

    @property
    def setting(self) -> float:
        """Seconds between the starts of two calls, as of now."""
        return max(self._least_spacing, self._delay)

    @property
    def throttle_rate(self) -> float:
        """The share of late answers that were refusals (429, 503), smoothed: a figure for metrics."""
        return self._throttle_rate

    def ready_in(self, now: float) -> float:
        """Seconds until the next call may start; 0 when it may start now."""
        return max(0.0, self._next_at - now, self._closed_until - now)

    def take_slot(self, now: float) -> float:
        """Take the next free slot; the answer is how long to wait before calling, 0 when the call may start now."""
        wait = self.ready_in(now)
        self._next_at = now + wait + self.setting
        return wait

    def note_answer(self, now: float, *, status: int, retry_after: float | None = None) -> float:
        """A call was answered; ``retry_after`` is in seconds from now. The answer is the new spacing."""
        is_refusal = status in _REFUSAL_STATUSES
        self._throttle_rate += _MEMORY * (float(is_refusal) - self._throttle_rate)
        if not is_refusal:
            # Only an answer that is no server error shows that the provider has room again.
            if status < 500:
                self._delay = self._delay * _SHRINK if self._delay * _SHRINK >= _FORGOTTEN_DELAY else 0.0
        elif retry_after is not None and retry_after >= 0.0:
            # The comparison is false for NaN, which some clients make of a header they cannot read.
            self._closed_until = max(self._closed_until, now + min(retry_after, self._longest_wait))
        elif now >= self._closed_until:
            # Calls under way when the provider closed are refused too: one burst is one refusal.
            self._delay = min(max(self._first_delay, 2.0 * self._delay), self._longest_delay)
            self._closed_until = now + self._delay * (0.5 + self._chance.random() / 2)
        return self.setting
