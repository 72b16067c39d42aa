"""Durations, sizes, backoffs and policies as people write them."""

from __future__ import annotations

import math
import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.lifecycle.policy import Policy, RunsIn
from penstock.lifecycle.quantities import seconds, size_in_bytes
from penstock.lifecycle.retry import Backoff


@pytest.mark.parametrize(
    ("written", "expected"),
    [("250ms", 0.25), ("30s", 30), (" 5 m ", 300), ("1.5h", 5400), ("3d", 259200), (0, 0), (2.5, 2.5),
     (timedelta(minutes=2), 120)],
)  # fmt: skip
def test_durations(written: Any, expected: float) -> None:
    assert seconds(written) == pytest.approx(expected)


@pytest.mark.parametrize("written", ["", "5", "5 parsecs", "-1s", "1e3s", "5M", -1, math.nan, math.inf, timedelta(-1)])
def test_what_is_not_a_duration_is_refused_with_the_value(written: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        seconds(written)
    assert repr(written) in str(refused.value)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1B", 1),
        ("100kB", 100_000),
        ("2MB", 2_000_000),
        ("1KiB", 1024),
        ("512MiB", 2**29),
        ("1.5GiB", 3 * 2**29),
        (7, 7),
    ],
)
def test_sizes(written: Any, expected: int) -> None:
    assert size_in_bytes(written) == expected


@pytest.mark.parametrize("written", ["", "5", "5mb", "0B", 0, -1])
def test_what_is_not_a_size_is_refused(written: Any) -> None:
    with pytest.raises(ConfigurationError, match="size"):
        size_in_bytes(written)


@pytest.mark.parametrize(
    ("written", "waits"),
    [
        ("1s fixed", [1, 1, 1, 1]),
        ("2h fixed", [7200, 7200, 7200, 7200]),
        ("1s exponential", [1, 2, 4, 8]),
        ("1s exponential up to 3s", [1, 2, 3, 3]),
        ("30m exponential", [1800, 3600, 3600, 3600]),
        ("2h exponential", [7200, 7200, 7200, 7200]),
        ("10s exponential up to 5s", [5, 5, 5, 5]),
    ],
)
def test_backoffs(written: str, waits: list[float]) -> None:
    backoff = Backoff.of(written)
    assert [backoff.bound(attempt) for attempt in (1, 2, 3, 4)] == waits
    assert Backoff.of(backoff) is backoff


@pytest.mark.parametrize("written", ["", "1s", "fixed", "1s linear", "1s exponential up to", "1s fixed until 5m"])
def test_what_is_not_a_backoff_is_refused(written: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a backoff; write"):
        Backoff.of(written)


@given(attempt=st.integers(1, 10_000), seed=st.integers(), after=st.none() | st.floats(0.001, 1e6))
def test_a_growing_wait_is_in_the_upper_half_and_no_shorter_than_asked(
    attempt: int, seed: int, after: float | None
) -> None:
    backoff = Backoff.of("1s exponential up to 5m")
    delay, bound = backoff.delay(attempt, after, random.Random(seed)), backoff.bound(attempt)
    assert bound / 2 <= delay <= max(bound, 86400.0)
    if after is None:
        assert delay <= bound
    else:
        assert delay >= min(after, 86400.0)


def test_a_fixed_wait_is_exact() -> None:
    assert {Backoff.of("5s fixed").delay(attempt) for attempt in range(1, 50)} == {5.0}


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"retries": -1}, "retries is -1; it must be a whole number from 0 to 2147483646"),
        ({"not_found_retries": -1}, "not_found_retries is -1"),
        ({"concurrency": 0}, "concurrency is 0; it must be a whole number from 1 to"),
        ({"queue_limit": 0}, "queue_limit is 0"),
        ({"priority": 32768}, "priority is 32768; it must be a whole number from -32768 to 32767"),
        ({"priority": -32769}, "priority is -32769"),
        ({"runs_in": "moon"}, "runs_in is 'moon'; it must be one of event_loop, threads, processes"),
        ({"memory_limit": "1GiB"}, "memory_limit needs runs_in='processes'"),
        ({"memory_limit": "1GiB", "runs_in": "threads"}, "memory_limit needs runs_in='processes'"),
        ({"timeout": "soon"}, "'soon' is not a duration"),
        ({"wait_limit": -1}, "out of range"),
        ({"backoff": "often"}, "'often' is not a backoff"),
    ],
)
def test_a_wrong_policy_is_refused_when_it_is_written(written: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Policy(**written)


def test_a_policy_is_read_into_seconds_and_bytes() -> None:
    policy = Policy(
        timeout="5m", memory_limit="512MiB", runs_in="processes", wait_limit="1h", run_limit="1d", abandon_after="2d"
    )
    assert (policy.timeout, policy.memory_limit, policy.runs_in) == (300, 2**29, RunsIn.PROCESSES)
    assert (policy.wait_limit, policy.run_limit, policy.abandon_after) == (3600, 86400, 172800)
    assert Policy() == Policy()


def test_a_job_keeps_the_retries_it_was_promised() -> None:
    policy = Policy(retries=3, backoff="1s fixed")
    assert policy.allowing(3) is policy
    assert (policy.allowing(5).retries, policy.allowing(5).backoff) == (5, policy.backoff)
