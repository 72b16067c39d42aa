"""The batch grows while the database is quick, shrinks when it is not, and never leaves its bounds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.worker.control.ingest_batch import IngestBatch, IngestSample


def quick(batch: IngestBatch, times: int = 1) -> list[int]:
    return [batch.observe(IngestSample(batch.setting, 5.0)) for _ in range(times)]


def at_latency(batch: IngestBatch, per_row_ms: float, times: int) -> list[int]:
    return [batch.observe(IngestSample(batch.setting, batch.setting * per_row_ms)) for _ in range(times)]


def test_it_starts_small_and_doubles_up_to_the_most() -> None:
    batch = IngestBatch()
    assert batch.setting == 64
    assert quick(batch, 8) == [128, 256, 512, 1024, 2048, 4096, 5000, 5000]


def test_between_the_two_latencies_it_stays_as_it_is() -> None:
    batch = IngestBatch()
    settings = at_latency(batch, 0.4, 40)
    assert len(set(settings[-30:])) == 1
    assert 250 < settings[-1] * 0.4 < 1000


def test_a_steady_latency_that_jumps_between_two_sizes_does_not_make_it_swing() -> None:
    batch = IngestBatch()

    def latency() -> float:
        return 200.0 if batch.setting < 1000 else 3000.0

    settings = [batch.observe(IngestSample(batch.setting, latency())) for _ in range(60)]
    changes = sum(1 for before, after in zip(settings[-30:], settings[-29:], strict=False) if after < before)
    assert changes <= 5, settings


def test_above_the_upper_latency_it_is_halved() -> None:
    batch = IngestBatch()
    quick(batch, 4)
    assert batch.observe(IngestSample(1024, 20_000.0)) == 512


def test_a_wait_for_a_connection_takes_a_quarter_off() -> None:
    batch = IngestBatch()
    quick(batch, 4)
    assert batch.observe(IngestSample(1024, 5.0, pool_wait_ms=0.1)) == 768


def test_an_error_leaves_a_quarter_and_a_pause_that_grows_until_a_batch_lands() -> None:
    batch, chance = IngestBatch(), random.Random(7)
    quick(batch, 5)
    assert batch.pause(chance) == 0.0
    assert batch.observe(IngestSample(2048, 5.0, failed=True)) == 512
    first = batch.pause(chance)
    assert 0.05 <= first <= 0.1
    for _ in range(3):
        batch.observe(IngestSample(batch.setting, 5.0, failed=True))
    assert 0.4 <= batch.pause(chance) <= 0.8
    assert batch.setting == 64
    for _ in range(20):
        batch.observe(IngestSample(batch.setting, 5.0, failed=True))
    assert batch.pause(chance) <= 30.0
    quick(batch)
    assert batch.pause(chance) == 0.0


def test_the_pause_has_jitter() -> None:
    batch, chance = IngestBatch(), random.Random(1)
    batch.observe(IngestSample(64, 5.0, failed=True))
    assert len({batch.pause(chance) for _ in range(10)}) == 10


def test_it_grows_again_after_a_shrink_but_not_at_once() -> None:
    batch = IngestBatch()
    quick(batch, 7)
    batch.observe(IngestSample(5000, 5.0, failed=True))
    assert quick(batch, 3) == [1250, 1250, 1250]
    assert quick(batch, 12)[-1] == 5000


def test_a_batch_that_was_not_full_does_not_make_it_grow() -> None:
    batch = IngestBatch()
    assert [batch.observe(IngestSample(10, 1.0)) for _ in range(5)] == [64] * 5
    assert batch.observe(IngestSample(0, 0.0)) == 64


def test_heavy_rows_make_a_batch_of_fewer() -> None:
    batch = IngestBatch(max_batch_bytes=1000)
    assert [batch.rows_for(size) for size in (0, 1, 100, 5000)] == [64, 64, 10, 1]


@given(
    st.lists(
        st.builds(
            IngestSample,
            rows=st.integers(0, 10_000),
            elapsed_ms=st.floats(0, 1e6),
            pool_wait_ms=st.sampled_from([0.0, 0.0, 3.0]),
            failed=st.booleans(),
        ),
        max_size=60,
    ),
    st.floats(0, 1e9),
)
def test_it_never_leaves_its_bounds(samples: list[IngestSample], row_bytes: float) -> None:
    batch, chance = IngestBatch(min_rows=10, max_rows=777, max_batch_bytes=4096), random.Random(0)
    for sample in samples:
        assert 10 <= batch.observe(sample) == batch.setting <= 777
        rows = batch.rows_for(row_bytes)
        assert 1 <= rows <= 777
        assert rows == 1 or rows * row_bytes <= 4096
        assert (batch.pause(chance) > 0) is sample.failed


@pytest.mark.parametrize(
    "bounds",
    [
        {"min_rows": 0},
        {"min_rows": 10, "max_rows": 9},
        {"p50_ms": 500.0, "p95_ms": 500.0},
        {"max_batch_bytes": 0},
    ],
)
def test_bounds_that_contradict_themselves_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="write"):
        IngestBatch(**bounds)
