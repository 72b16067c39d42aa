"""Single-step jobs, submitted in bulk and drained: jobs a second, against plain inserts, claims and completions.

Ours submits with one ``submit_many`` and then starts a worker; draining is timed from that start until no job waits
or runs. Submitting and draining are reported alone and together; the bar is on both together.
"""

from __future__ import annotations

import time

from benches.ceilings_postgres import PostgresCeiling
from benches.ceilings_sqlite import SQLiteCeiling
from benches.databases import Databases, SQLiteDatabases
from benches.plan import BATCH_SIZES, Plan, best, in_turns, say
from benches.report import Answer, Bar, by_pairs
from benches.workload import KIND, application, given, wait_until, working
from penstock.lifecycle.states import JobState

NAME = "single-step"
BAR = Bar(0.3)
IN_FLIGHT = (JobState.QUEUED, JobState.RUNNING)


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    count = plan.jobs
    ways = ("copy", "arrays") if databases.name == "postgresql" else ("executemany", "json_each")
    forms = [(size, way) for size in BATCH_SIZES for way in ways]
    size, way = best(forms, lambda form: count / sum(ceiling(databases, count, *form)), plan.rounds_to_choose)
    say(f"  {NAME} on {databases.name}: best batch of the ceiling is {size}, by {way}")
    mine, theirs = in_turns(
        lambda: ours(databases, count), lambda: ceiling(databases, count, size, way), plan.repetitions
    )
    notes = [f"{count:,} jobs, {plan.repetitions} repetitions; ceiling at batches of {size}, by {way}"]
    what = "single-step jobs"

    def rates(seconds: list[tuple[float, float]], *parts: int) -> list[float]:
        return [count / sum(one[part] for part in parts) for one in seconds]

    def answer(name: str, *parts: int, bar: Bar | None = None) -> Answer:
        return by_pairs(
            NAME, f"{what}, {name}", databases.name, "jobs/s", rates(mine, *parts), rates(theirs, *parts),
            bar=bar, notes=notes if bar else (),
        )  # fmt: skip

    return [answer("submit", 0), answer("drain", 1), answer("both together", 0, 1, bar=BAR)]


def ours(databases: Databases, count: int) -> tuple[float, float]:
    """Seconds to submit, and to drain."""
    with databases.fresh() as url, application(url) as app:
        assert not app.jobs.list(limit=1)
        params = [given(number) for number in range(count)]
        begun = time.perf_counter()
        ids = app.submit_many(KIND, params)
        submitted = time.perf_counter() - begun
        begun = time.perf_counter()
        with working(app) as worker:
            wait_until(
                worker, lambda: worker.signals.count("idle") > 0 and not app.jobs.list(states=IN_FLIGHT, limit=1)
            )
            drained = time.perf_counter() - begun
        last = app.jobs.get(ids[-1])
        assert last.state is JobState.SUCCEEDED, f"the last job ended as {last.state}"
        return submitted, drained


def ceiling(databases: Databases, count: int, size: int, way: str) -> tuple[float, float]:
    """The same in plain driver code."""
    with databases.fresh() as url:
        if isinstance(databases, SQLiteDatabases):
            light = SQLiteCeiling(url)
            try:
                submit = light.submit_jobs if way == "executemany" else light.submit_jobs_by_json
                return submit(count), light.drain_jobs(count, size, one_by_one=way == "executemany")
            finally:
                light.close()
        large = PostgresCeiling(url)
        try:
            record = large.submit_jobs if way == "copy" else large.submit_jobs_by_arrays
            return record(count), large.drain_jobs(count, size)
        finally:
            large.close()
