"""Claims while old jobs are pruned beside them: they should take no longer than 1.1 times as long as without.

The tables are those of a long time in service (:mod:`benches.large_tables`), of which two thirds are over and due. One
thread claims ten items at a time and records them; the duty of a worker prunes in another, at its usual pace, in every
second stretch of time. How fast rows go, and how large the tables are in the end, is in the notes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from sqlalchemy import func, select

from benches.databases import Databases
from benches.large_tables import fill
from benches.plan import Plan, say
from benches.report import Answer, Bar, by_blocks, p95
from benches.workload import KIND, RESULT_TEXT, application
from penstock import Penstock
from penstock.clock import ManualClock
from penstock.lifecycle import outcomes
from penstock.operations.prune import PruneRules
from penstock.store.tables import job_items
from penstock.testing.drive import Workbench
from penstock.worker.duties.pruner import PRUNER_RESTS, PRUNER_SECONDS, Pruner
from penstock.worker.loop import Loop

NAME = "pruning"
BAR = Bar(1.1, at_least=False)
ITEMS = 10
WARM_UP = 1.0
"""Seconds."""


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    with databases.fresh() as url, tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        fill(databases, url, plan.pruned_table)
        say(f"  {NAME} on {databases.name}: {plan.pruned_table:,} items made in {time.perf_counter() - begun:.0f} s")
        with application(url) as app:
            app.kind("earlier", keep_for="1h")(_nothing)
            bench = Workbench(app.store, ManualClock(), app.kinds)
            _claims(bench, WARM_UP)
            before, pruned_for = _count(app), 0.0
            without: list[float] = []
            beside: list[float] = []
            for _ in range(plan.pruning_rounds):
                without += _claims(bench, plan.pruning_seconds)
                with _pruning(app, Path(folder)):
                    begun = time.perf_counter()
                    beside += _claims(bench, plan.pruning_seconds)
                pruned_for += time.perf_counter() - begun
            gone = before - _count(app)
    assert gone > 0, "nothing was pruned"
    notes = [
        f"{plan.pruned_table:,} items at first; {gone:,} pruned in {pruned_for:.0f} s: {gone / pruned_for:,.0f}/s",
        f"ours is beside pruning, the ceiling column without; {len(beside):,} and {len(without):,} claims of {ITEMS}",
        f"p95 {p95(beside):.2f} ms beside pruning, {p95(without):.2f} ms without",
    ]
    return [
        by_blocks(NAME, "claim beside pruning, median", databases.name, beside, without, median, bar=BAR, notes=notes)
    ]


def _nothing(_item: object) -> None:
    """What the old jobs did."""


def _count(app: Penstock) -> int:
    return app.store.read(lambda one: one.values(int, select(func.count()).select_from(job_items)))[0]


def _claims(bench: Workbench, seconds: float) -> list[float]:
    """Milliseconds of each claim in a stretch of time; what was taken is completed between them."""
    taken = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        begun = time.perf_counter()
        held = bench.claim(KIND, size=ITEMS)
        taken.append((time.perf_counter() - begun) * 1000.0)
        assert len(held) == ITEMS, f"claimed {len(held)} items instead of {ITEMS}"
        bench.record(held, outcomes.done(RESULT_TEXT))
    return taken


@contextmanager
def _pruning(app: Penstock, folder: Path) -> Iterator[None]:
    """The duty of a worker, in a thread of its own."""
    pruner = Pruner(app.store, PruneRules(app.kinds), folder)
    duty = Loop("pruner", PRUNER_SECONDS, lambda: _turn(pruner), rest=PRUNER_RESTS)
    duty.run_once()
    duty.start()
    try:
        yield
    finally:
        duty.stop()
        assert duty.join(30.0), "a turn of the pruner hangs"


def _turn(pruner: Pruner) -> None:
    pruner.run()
