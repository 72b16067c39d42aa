"""No-op items of one large job, one worker process: items a second, against plain claims and completions.

Ours is timed from the moment the job is let go, with an idle worker waiting, until the job is seen to have succeeded:
that includes waking up, the first small claims while nothing is known, and the last commit.
"""

from __future__ import annotations

import statistics
import time

from benches.ceilings_postgres import PostgresCeiling
from benches.ceilings_sqlite import SQLiteCeiling
from benches.databases import Databases, SQLiteDatabases
from benches.plan import BATCH_SIZES, Plan, best, in_turns, say
from benches.report import Answer, Bar, by_pairs
from benches.workload import KIND, application, given, wait_until, working
from penstock.lifecycle.states import FINISHED, JobState

NAME = "items"
BAR = Bar(0.6)


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    if isinstance(databases, SQLiteDatabases):
        forms = [(size, one_by_one) for size in BATCH_SIZES for one_by_one in (True, False)]
    else:
        forms = [(size, False) for size in BATCH_SIZES]
    size, one_by_one = best(forms, lambda form: ceiling(databases, plan.items, *form), plan.rounds_to_choose)
    say(f"  {NAME} on {databases.name}: best batch of the ceiling is {size}")
    inside: list[float] = []

    def measure_ours() -> float:
        rate, rate_inside = ours(databases, plan.items)
        inside.append(rate_inside)
        return rate

    mine, theirs = in_turns(measure_ours, lambda: ceiling(databases, plan.items, size, one_by_one), plan.repetitions)
    form = f", {'executemany' if one_by_one else 'json_each'}" if databases.name == "sqlite" else ""
    notes = [
        f"{plan.items:,} items, {plan.repetitions} repetitions; ceiling at batches of {size}{form}",
        f"by the job's own started_at and completed_at, without the wake-up: {statistics.median(inside):,.0f} items/s",
    ]
    what = "no-op items of one large job"
    return [by_pairs(NAME, what, databases.name, "items/s", mine, theirs, bar=BAR, notes=notes)]


def ours(databases: Databases, count: int) -> tuple[float, float]:
    """Items a second by the wall clock, and between the job's own timestamps."""
    with databases.fresh() as url, application(url) as app:
        job = app.submit(KIND, items=[given(number) for number in range(1, count + 1)], hold=True).job
        with working(app) as worker:
            assert worker.signals.wait("idle"), "the worker did not become idle"
            begun = time.perf_counter()
            app.jobs.release(job.id)
            wait_until(worker, lambda: app.jobs.get(job.id).state in FINISHED)
            taken = time.perf_counter() - begun
        job = app.jobs.get(job.id)
        assert job.state is JobState.SUCCEEDED, f"the job ended as {job.state}"
        assert job.progress.done == count, f"{job.progress.done} of {count} items are done"
        assert job.started_at is not None
        assert job.completed_at is not None
        return count / taken, count / (job.completed_at - job.started_at).total_seconds()


def ceiling(databases: Databases, count: int, size: int, one_by_one: bool) -> float:
    """Items a second in plain driver code."""
    with databases.fresh() as url:
        if isinstance(databases, SQLiteDatabases):
            light = SQLiteCeiling(url)
            try:
                return count / light.drain_items(light.add_items(count), count, size, one_by_one=one_by_one)
            finally:
                light.close()
        large = PostgresCeiling(url)
        try:
            return count / large.drain_items(large.add_items(count), count, size)
        finally:
            large.close()
