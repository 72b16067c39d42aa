"""Concurrency grows while it helps and nothing is wrong, and drops at once when something is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.worker.control.claim_size import ClaimSize
from penstock.worker.control.concurrency import Concurrency, ConcurrencySample
from penstock.worker.control.pressure import HostFigures, Marks, Pressure, PressureGauge


def window(slots: Concurrency, *, most_useful: int = 10_000, **figures: object) -> ConcurrencySample:
    """A second in which each slot does ten items, as long as there are not more of them than are useful."""
    return ConcurrencySample(10 * min(slots.setting, most_useful), 1.0, **figures)  # type: ignore[arg-type]


def grown(most: int = 32) -> Concurrency:
    slots = Concurrency(maximum=most, first=most)
    slots.observe(window(slots))
    return slots


def test_it_grows_to_the_most_while_it_helps() -> None:
    slots = Concurrency(maximum=64, first=4)
    settings = [slots.observe(window(slots)) for _ in range(12)]
    assert settings == sorted(settings)
    assert settings[-1] == 64


def test_it_does_not_grow_when_no_work_waits() -> None:
    slots = Concurrency(maximum=64, first=4)
    assert {slots.observe(window(slots, waiting=False)) for _ in range(10)} == {4}


def test_it_settles_where_more_does_not_help() -> None:
    slots = Concurrency(maximum=64, first=4)
    settings = [slots.observe(window(slots, most_useful=16)) for _ in range(200)]
    assert set(settings[-60:]) <= {16, 20}
    assert settings[-60:].count(20) <= 3, "it looks above the ceiling only now and then"


def test_throttling_halves_it_and_one_burst_is_one_decrease() -> None:
    slots = grown()
    assert slots.observe(window(slots, throttled=30)) == 16
    assert slots.observe(window(slots, throttled=30)) == 16
    assert slots.observe(window(slots, throttled=30)) == 8


def test_a_little_throttling_is_let_be() -> None:
    slots = grown()
    assert slots.observe(window(slots, throttled=10)) == 32


def test_an_error_spike_halves_it() -> None:
    slots = grown()
    assert slots.observe(window(slots, errors=100)) == 16


def test_a_kind_that_often_fails_is_not_slowed_for_it() -> None:
    slots = Concurrency(maximum=32, first=32)
    assert {slots.observe(window(slots, errors=80)) for _ in range(20)} == {32}


@pytest.mark.parametrize("pressure", [Pressure.CPU, Pressure.MEMORY])
def test_pressure_takes_a_quarter_off(pressure: Pressure) -> None:
    slots = grown()
    assert slots.observe(window(slots, pressure=pressure)) == 24


def test_full_cores_are_no_reason_to_leave_one_idle() -> None:
    slots = Concurrency(maximum=8, first=8, cores=4)
    assert [slots.observe(window(slots, pressure=Pressure.CPU)) for _ in range(9)][-1] == 4
    assert [slots.observe(window(slots, pressure=Pressure.MEMORY)) for _ in range(9)][-1] == 1


def test_after_a_drop_it_waits_under_the_ceiling_and_then_passes_it() -> None:
    slots = grown()
    slots.observe(window(slots, throttled=30))
    settings = [slots.observe(window(slots)) for _ in range(20)]
    assert 30 in settings
    assert settings[-1] == 32


def test_under_a_steady_limit_it_meets_the_ceiling_less_and_less_often() -> None:
    slots = Concurrency(maximum=32, first=4)
    drops = []
    for number in range(300):
        before = slots.setting
        slots.observe(window(slots, throttled=4 * slots.setting if slots.setting > 10 else 0))
        if slots.setting < before:
            drops.append(number)
    assert drops
    assert len([number for number in drops if number >= 150]) <= 3, drops


def test_a_refusal_above_what_went_well_leads_back_to_it_and_one_there_halves_it() -> None:
    slots = Concurrency(maximum=32, first=8)
    assert slots.observe(window(slots)) == 10
    assert slots.observe(window(slots, throttled=10)) == 8
    assert slots.observe(window(slots, throttled=10)) == 8, "that window still holds calls from before"
    assert slots.observe(window(slots, throttled=10)) == 4


def shut_out(slots: Concurrency, windows: int) -> list[int]:
    """The settings while nearly everything is refused."""
    return [slots.observe(ConcurrencySample(1_000, 1.0, throttled=1_000)) for _ in range(windows)]


def test_whoever_was_shut_out_comes_back_to_what_went_well_and_waits_long_before_more() -> None:
    slots = Concurrency(maximum=128, first=32)
    assert [slots.observe(window(slots)) for _ in range(2)] == [40, 56]
    assert shut_out(slots, 3) == [14, 3, 1]
    assert slots.observe(window(slots)) == 1, "the first that gets through may have begun before"
    assert slots.observe(window(slots)) == 40
    # Up to a step below 56 at once; 56 itself after sixteen windows, where four would do after a mere refusal.
    settings = [slots.observe(window(slots)) for _ in range(20)]
    assert settings[:14] == [48] * 14
    assert 56 in settings


def test_items_of_another_cost_make_it_forget_what_went_well() -> None:
    slots = Concurrency(maximum=128, first=32)
    assert [slots.observe(window(slots)) for _ in range(2)] == [40, 56]
    assert shut_out(slots, 3) == [14, 3, 1]
    slots.observe(ConcurrencySample(1_000, 1.0))
    assert slots.observe(ConcurrencySample(1_000, 1.0)) == 2, "each slot does a hundred times as much"


def test_a_ceiling_found_under_pressure_is_forgotten_with_its_items() -> None:
    slots = Concurrency(maximum=32, first=32)
    assert slots.observe(window(slots, pressure=Pressure.CPU)) == 24
    slots.observe(window(slots))
    settings = [slots.observe(ConcurrencySample(slots.setting * 2, 20.0)) for _ in range(3)]
    assert settings == [26, 30, 32], "the stride grows, and nothing is waited for"


def test_items_of_another_cost_make_it_forget_the_ceiling() -> None:
    slots = Concurrency(maximum=32, first=4)
    for _ in range(150):
        slots.observe(window(slots, throttled=4 * slots.setting if slots.setting > 10 else 0))
    assert slots.setting <= 12
    settings = [slots.observe(ConcurrencySample(slots.setting, 1.0)) for _ in range(25)]
    assert settings[-1] == 32


_SAMPLES = st.builds(
    ConcurrencySample,
    items=st.integers(0, 500),
    elapsed_seconds=st.floats(0, 10),
    throttled=st.integers(0, 500),
    errors=st.integers(0, 500),
    waiting=st.booleans(),
    pressure=st.sampled_from(Pressure),
)


@given(st.lists(_SAMPLES, max_size=80), st.integers(1, 5), st.integers(5, 100), st.integers(-5, 200))
def test_it_never_leaves_its_bounds(samples: list[ConcurrencySample], least: int, most: int, first: int) -> None:
    slots = Concurrency(minimum=least, maximum=most, first=first, cores=3)
    for sample in samples:
        assert least <= slots.observe(sample) == slots.setting <= most


def test_bounds_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="minimum"):
        Concurrency(minimum=5, maximum=4, first=4)


def test_pressure_begins_and_ends_at_different_marks() -> None:
    gauge = PressureGauge()
    shares = [0.8, 0.86, 0.8, 0.76, 0.74, 0.8]
    seen = [gauge.observe(HostFigures(0.0, share)) is Pressure.MEMORY for share in shares]
    assert seen == [False, True, True, True, False, False]


def test_one_busy_second_is_no_shortage_of_processor_time() -> None:
    gauge = PressureGauge()
    gauge.observe(HostFigures(0.3, 0.0))
    assert gauge.observe(HostFigures(1.0, 0.0)) is Pressure.NONE
    assert [gauge.observe(HostFigures(1.0, 0.0)) for _ in range(12)][-1] is Pressure.CPU
    assert gauge.observe(HostFigures(1.0, 0.99)) is Pressure.MEMORY


def test_marks_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="must end below"):
        Marks(begins=0.5, ends=0.6)


def test_under_pressure_half_is_claimed() -> None:
    size = ClaimSize(target_ms=5000, safety=0.7, minimum=3, maximum=500, first=4)
    assert [size.under(pressure) for pressure in (Pressure.NONE, Pressure.CPU, Pressure.MEMORY)] == [4, 3, 3]
