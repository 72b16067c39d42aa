"""When the next call to a provider may start: by its rate, its Retry-After, its refusals and its outages.

Keep one for each provider (a domain, an API key). It does not sleep and has no clock: the time, in seconds of any clock
that does not jump, is an argument. It is not thread-safe; calls from several threads need a lock around it.

There are two kinds of trouble. A provider that **refuses** (429) works, and is asked too often: the spacing it needs is
remembered, and taken away gently. One that is **out of order** (408, 5xx, no answer) is asked again later and later,
and when it answers there is nothing to make up for. In both cases one burst is one trouble.
"""

from __future__ import annotations

import math
import random

from penstock.errors import ConfigurationError

_REFUSAL_STATUS = 429
_TIMEOUT_STATUS = 408
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
    after a first trouble without Retry-After; it doubles with each one that follows, up to ``longest_delay``.
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
        self._asked_until = -math.inf
        self._troubled_since: float | None = None
        self._is_out_of_order = False
        self._throttle_rate = 0.0

    @property
    def setting(self) -> float:
        """Seconds between the starts of two calls, as of now."""
        return max(self._least_spacing, self._delay)

    @property
    def throttle_rate(self) -> float:
        """The share of late calls that were refused (429) or failed (5xx, no answer), smoothed: for metrics."""
        return self._throttle_rate

    def asked_for(self, now: float) -> float:
        """Seconds for which the provider has asked for no calls."""
        return max(0.0, self._asked_until - now)

    def closed_for(self, now: float) -> float:
        """Seconds for which no call may start: the provider has asked for none, or we leave it alone."""
        return max(0.0, self._asked_until - now, self._closed_until - now)

    def troubled_for(self, now: float) -> float | None:
        """Seconds since the first trouble that no good answer has followed; None when there is none."""
        return None if self._troubled_since is None else max(0.0, now - self._troubled_since)

    def ready_in(self, now: float) -> float:
        """Seconds until the next call may start; 0 when it may start now."""
        return max(self.closed_for(now), self._next_at - now)

    def take_slot(self, now: float) -> float:
        """Take the next free slot; the answer is how long to wait before calling, 0 when the call may start now."""
        wait = self.ready_in(now)
        self._next_at = now + wait + self.setting
        return wait

    def note_answer(self, now: float, *, status: int | None, retry_after: float | None = None) -> float:
        """A call was answered, or was not (``status`` is None); the answer is the new spacing.

        ``retry_after`` is in seconds from now.
        """
        is_trouble = status is None or status in (_REFUSAL_STATUS, _TIMEOUT_STATUS) or status >= 500
        self._throttle_rate += _MEMORY * (float(is_trouble) - self._throttle_rate)
        if is_trouble:
            self._note_trouble(now, retry_after, is_refusal=status == _REFUSAL_STATUS)
        else:
            self._note_good_answer(now)
        return self.setting

    def _note_trouble(self, now: float, retry_after: float | None, *, is_refusal: bool) -> None:
        self._is_out_of_order = not is_refusal
        if self._troubled_since is None:
            self._troubled_since = now
        if retry_after is not None and retry_after >= 0.0:
            # The comparison is false for NaN, which some clients make of a header they cannot read.
            self._asked_until = max(self._asked_until, now + min(retry_after, self._longest_wait))
        elif not self.closed_for(now):
            # Calls under way when the provider closed are refused too: one burst is one refusal.
            self._delay = min(max(self._first_delay, 2.0 * self._delay), self._longest_delay)
            self._closed_until = now + self._delay * (0.5 + self._chance.random() / 2)

    def _note_good_answer(self, now: float) -> None:
        self._troubled_since = None
        if self._is_out_of_order:
            # Those who wait need not wait for slots that were far apart only because nobody answered.
            self._is_out_of_order = False
            self._delay = min(self._delay, self._first_delay)
            self._next_at = min(self._next_at, now + self.setting)
        self._delay = self._delay * _SHRINK if self._delay * _SHRINK >= _FORGOTTEN_DELAY else 0.0
