"""The controllers together: each disturbance is answered, the answer settles, and what was before comes back."""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.testing.simulator import SCENARIOS, FixedSettings, Moment, Run, simulate
from penstock.worker.control.pressure import Pressure

PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "adaptive-control.md"
GRID = [FixedSettings(size, slots) for size in (1, 16, 256) for slots in (2, 8, 16, 32, 64)]


class Expected(NamedTuple):
    """Which setting a scenario disturbs, and when."""

    setting: str
    begin: float
    end: float | None


DISTURBED = {
    "step_in_latency": Expected("claim_size", 90, None),
    "burst_of_429": Expected("concurrency", 60, 75),
    "error_spike": Expected("concurrency", 60, 75),
    "memory_pressure": Expected("concurrency", 60, 90),
    "slow_database": Expected("ingest_rows", 60, 90),
}


@cache
def run_of(name: str, seed: int = 1) -> Run:
    return simulate(SCENARIOS[name], seed=seed)


def settings(name: str, begin: float = 0, end: float = 1e9) -> list[int]:
    of = attrgetter(DISTURBED[name].setting)
    return [of(moment) for moment in run_of(name).trace if begin <= moment.time < end]


def figures(name: str) -> tuple[int, int, int, str]:
    """Before the disturbance, windows until the first move, the lowest, and windows from its end until all is back."""
    what = DISTURBED[name]
    before = settings(name, 0, what.begin)[-1]
    after = settings(name, what.begin)
    first = next(number for number, setting in enumerate(after, 1) if setting < before)
    if what.end is None:
        return before, first, settings(name)[-1], "it stays"
    back = next(number for number, setting in enumerate(settings(name, what.end), 1) if setting >= before)
    return before, first, min(after), str(back)


@pytest.mark.parametrize("name", DISTURBED)
def test_the_setting_moves_the_right_way_within_a_few_windows(name: str) -> None:
    before, first, lowest, _ = figures(name)
    assert first <= 3
    assert lowest <= before / 2
    soon = settings(name, DISTURBED[name].begin)[:8]
    assert soon[-1] <= before / 2, soon


@pytest.mark.parametrize("name", DISTURBED)
def test_the_last_third_is_calm(name: str) -> None:
    all_settings = settings(name)
    last = all_settings[-len(all_settings) // 3 :]
    assert max(last) <= max(min(last) * 1.15, min(last) + 3), last


@pytest.mark.parametrize("name", [name for name, what in DISTURBED.items() if what.end is not None])
def test_what_was_before_comes_back(name: str) -> None:
    before, _, _, back = figures(name)
    assert int(back) <= 30
    assert settings(name)[-1] == before


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_setting_ever_leaves_its_bounds(name: str) -> None:
    most = SCENARIOS[name].max_at_once

    def is_within(moment: Moment) -> bool:
        return 1 <= moment.claim_size <= 500 and 1 <= moment.concurrency <= most and 64 <= moment.ingest_rows <= 5000

    trace = run_of(name).trace
    assert len(trace) > 100
    assert [moment for moment in trace if not is_within(moment)] == []


def test_memory_pressure_is_relieved_while_it_lasts() -> None:
    held = [moment for moment in run_of("memory_pressure").trace if 70 <= moment.time < 90]
    assert sum(moment.pressure is Pressure.NONE for moment in held) >= len(held) * 0.7


def test_retry_after_and_fewer_slots_keep_refusals_rare() -> None:
    """Slots that stay at sixteen are refused far more often in the same fifteen seconds."""
    stubborn = simulate(SCENARIOS["burst_of_429"], seed=1, fixed_settings=FixedSettings(100, 16))
    assert run_of("burst_of_429").throttled * 3 < stubborn.throttled


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    again = simulate(SCENARIOS["burst_of_429"], seed=1)
    assert again == run_of("burst_of_429")
    assert again.trace != run_of("burst_of_429", seed=2).trace


def test_adapting_finishes_sooner_than_any_pair_of_fixed_settings() -> None:
    adaptive = [finish(simulate(SCENARIOS["cost_and_throttle"], seed=seed)) for seed in (1, 2, 3)]
    assert max(adaptive) < best_fixed()[0]


@cache
def best_fixed() -> tuple[float, FixedSettings]:
    world = SCENARIOS["cost_and_throttle"]
    return min(((finish(simulate(world, seed=1, fixed_settings=pair)), pair) for pair in GRID), key=lambda one: one[0])


def finish(run: Run) -> float:
    """When it was done; a run that was not done in time counts as the longest there is."""
    return run.finished_at if run.finished_at is not None else SCENARIOS["cost_and_throttle"].until


def tables() -> list[str]:
    """The lines of the page's tables, from what the simulator says now."""
    lines = []
    for name, what in DISTURBED.items():
        before, first, lowest, back = figures(name)
        lines.append(f"| `{name}` | `{what.setting}` | {before} | {first} | {lowest} | {back} |")
    for seed in (1, 2, 3):
        run = run_of("cost_and_throttle", seed)
        lines.append(f"| adaptive, seed {seed} | {finish(run):.0f} s | {run.throttled} |")
    seconds, pair = best_fixed()
    refused = simulate(SCENARIOS["cost_and_throttle"], seed=1, fixed_settings=pair).throttled
    lines.append(
        f"| the best of {len(GRID)} fixed pairs: claim {pair.claim_size}, {pair.concurrency} slots "
        f"| {seconds:.0f} s | {refused} |"
    )
    return lines


def test_the_page_shows_the_figures_of_the_simulator() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in tables() if line not in page] == []
