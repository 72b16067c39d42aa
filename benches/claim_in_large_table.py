"""Claim time with ten thousand and with five million items in the table: it should hardly differ.

Both databases are open at the same time and the claims alternate. A claim takes ten items, so that finding them counts
for more than writing them; their outcomes are recorded between the claims, outside the clock.
"""

from __future__ import annotations

import time
from statistics import median

from benches.databases import Databases
from benches.large_tables import fill, groups
from benches.plan import Plan, say
from benches.report import Answer, Bar, by_blocks, p95
from benches.workload import KIND, RESULT_TEXT, application
from penstock.clock import ManualClock
from penstock.lifecycle import outcomes
from penstock.testing.drive import Workbench

NAME = "claim"
BAR = Bar(1.5, at_least=False)
ITEMS = 10
WARM_UP = 20


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    running = groups(plan.small_table)[-1]
    assert (plan.claims + WARM_UP) * ITEMS <= running.items - running.done, "the small table has too few items to claim"
    with databases.fresh() as small_url, databases.fresh() as large_url:
        for url, total in ((small_url, plan.small_table), (large_url, plan.large_table)):
            begun = time.perf_counter()
            fill(databases, url, total)
            say(f"  {NAME} on {databases.name}: {total:,} items made in {time.perf_counter() - begun:.0f} s")
        with application(small_url) as small, application(large_url) as large:
            benches = [Workbench(app.store, ManualClock(), app.kinds) for app in (small, large)]
            seen: tuple[list[float], list[float]] = ([], [])
            for number in range(WARM_UP + plan.claims):
                for side in (0, 1) if number % 2 == 0 else (1, 0):
                    seen[side].append(_claim(benches[side]))
    at_small, at_large = seen[0][WARM_UP:], seen[1][WARM_UP:]
    notes = [
        f"ours is the large table, the ceiling column the small one; {plan.claims} claims of {ITEMS} items each",
        f"p95 {p95(at_large):.2f} ms with the large table, {p95(at_small):.2f} ms with the small one",
    ]
    what = f"claim, {_words(plan.large_table)} against {_words(plan.small_table)} items, median"
    return [by_blocks(NAME, what, databases.name, at_large, at_small, median, bar=BAR, notes=notes)]


def _claim(bench: Workbench) -> float:
    """Milliseconds of one claim; what was taken is completed afterwards."""
    begun = time.perf_counter()
    held = bench.claim(KIND, size=ITEMS)
    taken = time.perf_counter() - begun
    assert len(held) == ITEMS, f"claimed {len(held)} items instead of {ITEMS}"
    assert len(bench.record(held, outcomes.done(RESULT_TEXT))) == ITEMS
    return taken * 1000.0


def _words(count: int) -> str:
    if count % 1_000_000 == 0:
        return f"{count // 1_000_000} million"
    return f"{count // 1000} thousand"
