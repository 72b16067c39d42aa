"""Single-step jobs while somebody keeps an old snapshot open: does the last interval go as fast as the second?

A reader (a backup, a report) opens a REPEATABLE READ transaction before the load begins and leaves it open, so that
PostgreSQL may remove nothing of what becomes dead meanwhile. One worker drains what a feeder keeps in line. For each
interval: jobs a second, and the entries read from each index. The notes name every index whose entries per job grow.

Tables grow while it runs, with a snapshot or without. So the same is measured once more with nobody reading, and the
last answer says what the snapshot itself costs.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from benches.databases import Databases, plain
from benches.plan import LeftOut, Plan, say
from benches.report import Answer, Bar
from benches.workload import KIND, RESULT, given, working
from penstock import Penstock

NAME = "held-snapshot"
BAR = Bar(0.9)
FLAT = Bar(1.5, at_least=False)
IN_LINE = 2_000
BATCH = 100
LINE = "ix_jobs_next_claim"
_READ = b"SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes"


@dataclass(frozen=True, slots=True)
class Interval:
    """What happened in one stretch of time."""

    jobs: int
    seconds: float
    claims: int
    read: dict[str, int]
    """Entries read, by index."""

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.seconds

    def read_per_claim(self) -> float:
        """Entries of the line read for each claim."""
        return self.read[LINE] / max(1, self.claims)

    def read_per_job(self, index: str) -> float:
        """Entries of an index read for each job."""
        return self.read[index] / max(1, self.jobs)


class Load:
    """Jobs that do nothing, as many as the worker takes."""

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self._stopping = threading.Event()
        self.done = 0

        @app.kind(KIND)
        async def noop(_item: Any) -> dict[str, str]:
            self.done += 1
            return RESULT

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Keep the line filled."""
        feeder = threading.Thread(target=self._feed, daemon=True)
        feeder.start()
        try:
            yield
        finally:
            self._stopping.set()
            feeder.join()

    def _feed(self) -> None:
        submitted = 0
        while not self._stopping.is_set():
            if submitted - self.done < IN_LINE:
                self._app.submit_many(KIND, [given(number) for number in range(submitted, submitted + BATCH)])
                submitted += BATCH
            else:
                time.sleep(0.002)


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    if databases.name != "postgresql":
        raise LeftOut("SQLite has no dead index entries")
    intervals = measure(databases, plan.snapshot_intervals, plan.snapshot_seconds)
    control = measure(databases, plan.snapshot_intervals, plan.snapshot_seconds, held=False)
    second, last = intervals[1], intervals[-1]
    rates, reads = [one.rate for one in intervals], [one.read_per_claim() for one in intervals]
    free = [one.rate for one in control]
    here, there = statistics.median(rates[1:]), statistics.median(free[1:])
    notes = [
        f"{len(intervals)} intervals of {plan.snapshot_seconds} s; ours is the last, the ceiling column the second",
        f"jobs a second: {', '.join(f'{one:,.0f}' for one in rates)}",
        f"entries of {LINE} a claim: {', '.join(f'{one:,.0f}' for one in reads)}",
        *_growing(second, last),
    ]
    return [
        Answer(NAME, "held snapshot, jobs", databases.name, "jobs/s", last.rate, second.rate, last.rate / second.rate,
               [last.rate / second.rate], BAR, notes, {"rates": rates}),
        Answer(NAME, "held snapshot, index entries a claim", databases.name, "entries", reads[-1], reads[1],
               reads[-1] / reads[1], [reads[-1] / reads[1]], FLAT, (), {"reads": reads}),
        Answer(NAME, "held snapshot against none", databases.name, "jobs/s", here, there, here / there,
               [here / there], None, (f"jobs a second without: {', '.join(f'{one:,.0f}' for one in free)}",),
               {"rates": free}),
    ]  # fmt: skip


def _growing(second: Interval, last: Interval) -> Iterator[str]:
    for index in sorted(last.read):
        before, after = second.read_per_job(index), last.read_per_job(index)
        if after > 1.0 and after > 1.5 * before:
            yield f"entries of {index} a job: from {before:,.1f} to {after:,.1f}"


def measure(databases: Databases, intervals: int, seconds: float, *, held: bool = True) -> list[Interval]:
    """The intervals of one run."""
    found: list[Interval] = []
    with databases.fresh() as url, psycopg.connect(plain(url)) as reader, psycopg.connect(plain(url)) as watch:
        watch.autocommit = True
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        if held:
            reader.execute("SELECT 1")
        app = Penstock(url)
        load = Load(app)
        try:
            with load.feeding(), working(app) as worker:
                before = _read(watch), load.done, worker.signals.count("claimed"), time.monotonic()
                for _ in range(intervals):
                    time.sleep(seconds)
                    after = _read(watch), load.done, worker.signals.count("claimed"), time.monotonic()
                    read = {index: after[0][index] - before[0].get(index, 0) for index in after[0]}
                    found.append(Interval(after[1] - before[1], after[3] - before[3], after[2] - before[2], read))
                    before = after
                    one = found[-1]
                    say(
                        f"  {one.rate:,.0f} jobs/s, {one.claims / one.seconds:,.1f} claims/s, "
                        f"{one.read_per_claim():,.0f} entries of the line for each"
                    )
        finally:
            app.close()
        reader.rollback()
    return found


def _read(watch: psycopg.Connection[Any]) -> dict[str, int]:
    return {str(name): int(read) for name, read in watch.execute(_READ).fetchall()}
