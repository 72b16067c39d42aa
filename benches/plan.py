"""How large a run is, and taking turns."""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

Choice = TypeVar("Choice")

BATCH_SIZES = (100, 500, 1000, 2000)


class LeftOut(Exception):
    """A question that cannot be asked here; the text says what it would take."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of one run."""

    items: int = 60_000
    jobs: int = 20_000
    repetitions: int = 9
    rounds_to_choose: int = 3
    pick_ups: int = 300
    large_table: int = 5_000_000
    small_table: int = 10_000
    claims: int = 200
    hashes: int = 100_000
    jobs_of_photos: int = 3
    photos: int = 150
    repetitions_of_photos: int = 3
    jobs_to_ask_for: int = 100_000
    seconds_of_load: int = 3
    repetitions_of_load: int = 5
    rows_of_a_table: int = 1_000_000
    rows_of_a_workbook: int = 100_000
    items_to_export: int = 1_000_000
    repetitions_of_tables: int = 2
    large_items: int = 1_000_000
    page_asks: int = 50
    adaptive_items: int = 20_000
    repetitions_of_adaptive: int = 3
    snapshot_intervals: int = 10
    snapshot_seconds: int = 60
    celery_items: int = 8_000
    celery_noops: int = 40_000
    repetitions_of_celery: int = 3
    seconds_of_attack: int = 60
    pruned_table: int = 10_000_000
    pruning_rounds: int = 10
    pruning_seconds: float = 6.0
    chord_tasks: int = 1_000
    repetitions_of_chords: int = 5

    @classmethod
    def quick(cls) -> Plan:
        """Enough to see that it works, and roughly where it stands."""
        return cls(
            items=20_000, jobs=10_000, repetitions=3, rounds_to_choose=1, pick_ups=80, large_table=500_000, claims=100,
            hashes=20_000, jobs_of_photos=1, photos=24, repetitions_of_photos=2, jobs_to_ask_for=10_000,
            seconds_of_load=1, repetitions_of_load=2, rows_of_a_table=100_000, items_to_export=50_000,
            repetitions_of_tables=2, large_items=100_000, page_asks=20, adaptive_items=1_500, repetitions_of_adaptive=1,
            snapshot_intervals=8, snapshot_seconds=10, celery_items=2_000, celery_noops=10_000, repetitions_of_celery=1,
            seconds_of_attack=20, rows_of_a_workbook=20_000,
            pruned_table=600_000, pruning_rounds=4, pruning_seconds=3.0,
            chord_tasks=300, repetitions_of_chords=1,
        )  # fmt: skip


def say(text: str) -> None:
    """Tell whoever waits; not on stdout, which carries the table."""
    print(text, file=sys.stderr, flush=True)


def best(choices: Iterable[Choice], measure: Callable[[Choice], float], rounds: int) -> Choice:
    """The choice with the highest median, measured in turns."""
    candidates = list(choices)
    seen: dict[Choice, list[float]] = {one: [] for one in candidates}
    for _ in range(rounds):
        for one in candidates:
            seen[one].append(measure(one))
    return max(candidates, key=lambda one: statistics.median(seen[one]))


def in_turns(
    ours: Callable[[], Choice], ceiling: Callable[[], Choice], times: int
) -> tuple[list[Choice], list[Choice]]:
    """Measure both so many times, one after the other; who goes first changes, so that neither has it easier."""
    results: tuple[list[Choice], list[Choice]] = ([], [])
    sides = (ours, ceiling)
    for number in range(times):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            gc.collect()
            results[side].append(sides[side]())
    return results
