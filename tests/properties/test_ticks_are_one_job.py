"""Every tick is one job: whoever dies at whatever statement, and however many look at the same moment."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import datetime

import pytest

from penstock.clock import ManualClock
from penstock.lifecycle.schedules import CatchUp, Schedule
from penstock.operations import schedules
from penstock.store.engine import Store, open_store
from penstock.testing.drive import MAX_BYTES, Workbench
from penstock.testing.fault_points import StoppedDead, count_points, stop_dead_at
from penstock.testing.invariants import violations
from tests.properties.engine_kinds import engine_kinds
from tests.sizes import size

HOURLY = Schedule("hourly", "0 * * * *", "single", catch_up=CatchUp.ALL)
PROGRAMS = 4
TICKS = size(10, 200)


def opened(url: str, clock: ManualClock) -> Workbench:
    return Workbench(open_store(url, clock=clock, sqlite_synchronous="OFF"), clock, engine_kinds())


def submit_due(bench: Workbench) -> int:
    return schedules.submit_due(bench.store, bench.kinds, max_bytes=MAX_BYTES)


def declared(bench: Workbench) -> None:
    bench.store.write(lambda transaction: schedules.declare(transaction, [HOURLY], max_bytes=MAX_BYTES))


def ticks(bench: Workbench) -> Counter[datetime | None]:
    return Counter(job.run_at for job in bench.jobs())


def test_whoever_dies_leaves_the_tick_to_the_next(migrated_url: str) -> None:
    clock = ManualClock()
    bench = opened(migrated_url, clock)
    declared(bench)
    clock.advance(3_600)
    with count_points(bench.store) as points:
        assert submit_due(bench) == 1
    for number in range(len(points)):
        clock.advance(3_600)
        with pytest.raises(StoppedDead), stop_dead_at(bench.store, number):
            submit_due(bench)
        bench.store.close()
        bench = opened(migrated_url, clock)
        submit_due(bench)
    assert set(ticks(bench).values()) == {1}
    assert len(ticks(bench)) == len(points) + 1
    assert violations(bench.store) == []
    bench.store.close()


def test_programs_that_look_at_the_same_moment(migrated_url: str) -> None:
    clock = ManualClock()
    benches = [opened(migrated_url, clock) for _ in range(PROGRAMS)]
    together = threading.Barrier(PROGRAMS)
    submitted: list[int] = []

    def run(bench: Workbench) -> None:
        for _ in range(TICKS):
            if together.wait() == 0:
                clock.advance(3_600)
            together.wait()
            submitted.append(submit_due(bench))

    declared(benches[0])
    threads = [threading.Thread(target=run, args=[bench]) for bench in benches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ticks(benches[0]) == Counter(dict.fromkeys(ticks(benches[0]), 1))
    assert (len(ticks(benches[0])), sum(submitted)) == (TICKS, TICKS)
    stores: list[Store] = [bench.store for bench in benches]
    assert violations(stores[0]) == []
    for store in stores:
        store.close()
