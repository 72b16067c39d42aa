"""Calls keep the provider's rate, wait as long as it asks, and slow down when it refuses or fails without a reason."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.worker.control.provider_delay import ProviderDelay


def test_without_a_rate_nothing_waits() -> None:
    provider = ProviderDelay()
    assert [provider.take_slot(1.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert provider.ready_in(1.0) == 0.0


def test_calls_keep_the_configured_rate() -> None:
    provider = ProviderDelay(calls_per_second=4.0)
    assert [provider.take_slot(10.0) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    assert provider.ready_in(10.5) == 0.5
    assert provider.ready_in(12.0) == 0.0


def test_an_idle_time_is_not_saved_up_for_a_burst() -> None:
    provider = ProviderDelay(calls_per_second=1.0)
    provider.take_slot(0.0)
    assert [provider.take_slot(100.0), provider.take_slot(100.0)] == [0.0, 1.0]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_retry_after_is_kept_to_the_second_by_every_call(status: int) -> None:
    provider = ProviderDelay()
    provider.note_answer(100.0, status=status, retry_after=30.0)
    assert [provider.ready_in(now) for now in (100.0, 129.0, 130.0)] == [30.0, 1.0, 0.0]
    provider.note_answer(101.0, status=200)
    assert provider.ready_in(101.0) == 29.0
    provider.note_answer(102.0, status=429, retry_after=1.0)
    assert provider.ready_in(102.0) == 28.0, "a shorter one does not cut the longer one"


def test_retry_after_is_bounded_and_nonsense_is_not_believed() -> None:
    provider = ProviderDelay(chance=random.Random(3))
    provider.note_answer(0.0, status=429, retry_after=1e9)
    assert provider.ready_in(0.0) == 3600.0
    for nonsense in (math.nan, -5.0):
        other = ProviderDelay(chance=random.Random(3))
        other.note_answer(0.0, status=429, retry_after=nonsense)
        assert 0.25 <= other.ready_in(0.0) <= 0.5


TROUBLE = pytest.mark.parametrize("status", [429, 408, 500, 502, 503, None])
"""The statuses that are trouble; None is a call without an answer."""


@TROUBLE
def test_trouble_without_retry_after_doubles_the_delay_with_jitter(status: int | None) -> None:
    provider, now, delays = ProviderDelay(chance=random.Random(5)), 0.0, []
    for _ in range(10):
        delays.append(provider.note_answer(now, status=status))
        assert delays[-1] / 2 <= provider.ready_in(now) <= delays[-1]
        now += provider.ready_in(now)
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


@TROUBLE
def test_a_burst_of_trouble_is_one_trouble(status: int | None) -> None:
    provider = ProviderDelay(chance=random.Random(5))
    assert {provider.note_answer(0.0, status=status) for _ in range(20)} == {0.5}


def test_successes_take_the_delay_away_gently() -> None:
    provider = ProviderDelay(chance=random.Random(5))
    provider.note_answer(0.0, status=429)
    shrinking = [provider.note_answer(1.0, status=200) for _ in range(40)]
    assert shrinking[:2] == [pytest.approx(0.4), pytest.approx(0.32)]
    assert shrinking[-1] == 0.0


def test_who_waited_out_an_outage_makes_up_for_nothing() -> None:
    """The spacing of a provider that refuses is remembered; that of one that was out of order is not."""
    for status, spacing in ((429, 12.8), (500, 0.4), (None, 0.4)):
        provider, now = ProviderDelay(chance=random.Random(5)), 0.0
        for _ in range(6):
            now += provider.ready_in(now)
            provider.take_slot(now)
            provider.note_answer(now, status=status)
        now += provider.ready_in(now)
        provider.take_slot(now)
        assert provider.note_answer(now, status=200) == pytest.approx(spacing)
        assert provider.ready_in(now) == pytest.approx(16.0 if status == 429 else 0.5)


def test_trouble_lasts_until_an_answer_is_good() -> None:
    provider = ProviderDelay()
    assert provider.troubled_for(0.0) is None
    for now, status in ((1.0, 500), (2.0, None), (3.0, 429)):
        provider.note_answer(now, status=status)
    assert provider.troubled_for(5.0) == 4.0
    provider.note_answer(6.0, status=404)
    assert provider.troubled_for(6.0) is None


def test_what_the_provider_asked_for_is_told_apart_from_our_own_caution() -> None:
    provider = ProviderDelay()
    provider.note_answer(0.0, status=500)
    assert provider.closed_for(0.0) > provider.asked_for(0.0) == 0.0
    provider.note_answer(10.0, status=503, retry_after=30.0)
    assert (provider.closed_for(10.0), provider.asked_for(10.0)) == (30.0, 30.0)


def test_the_throttle_rate_follows_the_answers() -> None:
    provider = ProviderDelay()
    assert provider.throttle_rate == 0.0
    for status in (429, 500, 503, None) * 25:
        provider.note_answer(0.0, status=status, retry_after=0.0)
    assert provider.throttle_rate > 0.95
    for _ in range(100):
        provider.note_answer(0.0, status=200)
    assert provider.throttle_rate < 0.05


@given(
    st.lists(
        st.tuples(
            st.floats(0, 100),
            st.sampled_from([200, 404, 408, 429, 500, 503, None]),
            st.none() | st.floats(allow_nan=True, allow_infinity=True),
        ),
        max_size=60,
    )
)
def test_no_wait_is_longer_than_its_bounds(answers: list[tuple[float, int | None, float | None]]) -> None:
    provider, now = ProviderDelay(calls_per_second=10.0, chance=random.Random(0)), 0.0
    for passed, status, retry_after in answers:
        now += passed
        assert 0.1 <= provider.note_answer(now, status=status, retry_after=retry_after) <= 60.0
        assert 0.0 <= provider.ready_in(now) <= 3600.0 + 1e-9
        assert 0.0 <= provider.throttle_rate <= 1.0


@pytest.mark.parametrize("wrong", [{"calls_per_second": -1.0}, {"first_delay": 0.0}, {"calls_per_second": math.nan}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="write"):
        ProviderDelay(**wrong)
