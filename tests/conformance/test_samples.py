"""Samples of the lanes: written when a worker did something, read by time and kind, kept for a day."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from penstock import ItemContext, JobContext, Penstock, Permanent, owner
from penstock.clock import ManualClock
from penstock.errors import JobNotFound
from penstock.operations.samples import forget_samples, keep_samples, samples, thinned_samples
from penstock.store.engine import Store
from tests.on_store import OnStore

PATIENCE = 30.0
DAY = 86_400.0


def keep(store: Store, worker: str, **figures: int) -> None:
    """One sample for each kind named."""
    store.write(lambda one: keep_samples(one, worker, {kind: {"items": items} for kind, items in figures.items()}))


def found(
    store: Store, clock: ManualClock, *, ago: float = 10 * DAY, kind: str | None = None
) -> list[tuple[str, str, int]]:
    """What is kept of the last so many seconds."""
    since = clock.held() - timedelta(seconds=ago)
    kept = store.read(lambda one: samples(one, since=since, kind=kind))
    return [(one.kind, one.worker, one.data["items"]) for one in kept]


def test_they_are_read_in_the_order_of_their_time_by_kind_and_since_when(store: Store, clock: ManualClock) -> None:
    keep(store, "w2", left=1, right=2)
    clock.advance(10)
    keep(store, "w1", left=3)
    clock.advance(10)
    keep(store, "w2", left=4)
    keep(store, "w1", left=5)
    assert found(store, clock, kind="left") == [
        ("left", "w2", 1),
        ("left", "w1", 3),
        ("left", "w1", 5),
        ("left", "w2", 4),
    ]
    assert found(store, clock, kind="right") == [("right", "w2", 2)]
    assert found(store, clock, kind="none") == []
    assert sorted(found(store, clock)) == sorted([*found(store, clock, kind="left"), ("right", "w2", 2)])
    assert found(store, clock, ago=10) == [("left", "w1", 5), ("left", "w2", 4)], "that very moment is not behind it"
    assert found(store, clock, ago=0) == []


def test_a_day_of_them_is_kept(store: Store, clock: ManualClock) -> None:
    keep(store, "w", left=1)
    clock.advance(1)
    keep(store, "w", left=2)
    clock.advance(DAY - 1)
    assert store.write(forget_samples) == 0, "a day old is not older than a day"
    clock.advance(0.5)
    assert store.write(forget_samples) == 1
    assert found(store, clock) == [("left", "w", 2)]
    clock.advance(DAY)
    assert store.write(forget_samples) == 1
    assert found(store, clock) == []


@pytest.fixture
def app(store: Store, tmp_path: Path) -> Penstock:
    # The clock stands still, and a worker has one sample for each moment: the one it leaves when it stops.
    app = OnStore(store, tmp_path, sweep_seconds=3600.0)

    @app.kind("busy")
    class Busy:
        def gauges(self) -> dict[str, int]:
            return {"throttled": 3}

        def plan(self, job: JobContext) -> list[int]:
            return list(range(40))

        def process(self, item: ItemContext) -> int:
            if item.input % 4 == 0:
                raise Permanent("every fourth fails")
            return int(item.input)

    app.kind("idle")(lambda item: item.input)
    return app


def test_a_worker_that_did_something_leaves_one(app: Penstock, clock: ManualClock) -> None:
    before = clock.held() - timedelta(seconds=1)
    job = app.submit("busy").job
    worker = app.worker()
    assert worker.run_until_idle(PATIENCE)
    assert app.jobs.get(job.id).progress.processed == 40
    [kept] = app.system.samples(since=before)
    assert (kept.kind, kept.worker, kept.at) == ("busy", worker.name, clock.held())
    assert [kept] == app.system.samples(since=before, kind="busy")
    assert app.system.samples(since=before, kind="idle") == []
    assert (kept.data["held"], kept.data["gauges"]) == (0, {"throttled": 3})
    assert kept.data["error_rate"] == round(10 / 41, 4), "ten of forty items and a plan failed"
    assert kept.data["concurrency"] >= 1


def test_one_that_did_nothing_leaves_none(app: Penstock, clock: ManualClock) -> None:
    assert app.drain(timeout=PATIENCE)
    assert app.system.samples(since=clock.held() - timedelta(days=9)) == []


def test_a_workers_sweep_forgets_what_is_older_than_a_day(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    app = OnStore(store, tmp_path, sweep_seconds=0.05)
    app.kind("idle")(lambda item: item.input)
    keep(app.store, "w", busy=1)
    clock.advance(DAY + 1)
    keep(app.store, "w", busy=2)
    with app.working() as worker:
        worker.signals.listen()
        assert worker.signals.wait("swept", 2), "no sweep was made"
    assert found(app.store, clock) == [("busy", "w", 2)]


def test_so_does_a_sweep_by_hand(app: Penstock, clock: ManualClock) -> None:
    """Where jobs are only kicked off there is no worker that would."""
    keep(app.store, "w", busy=1)
    clock.advance(DAY + 1)
    app.system.sweep()
    assert found(app.store, clock) == []


# Thinned --------------------------------------------------------------------------------------------------------------


def thinned(store: Store, *, since: datetime, until: datetime | None = None, most: int = 10) -> list[int]:
    """The figures of a kind's samples, at most so many of them."""
    kept = store.read(lambda one: thinned_samples(one, "left", since=since, until=until, limit=most))
    return [one.data["items"] for one in kept]


def test_few_come_all_and_from_behind_the_first_moment_to_the_last(store: Store, clock: ManualClock) -> None:
    began = clock.held()
    for number in range(10):
        keep(store, "w", left=number, right=-1)
        clock.advance(5)
    assert thinned(store, since=began - timedelta(seconds=1)) == list(range(10))
    assert thinned(store, since=began) == list(range(1, 10))
    assert thinned(store, since=began, until=began + timedelta(seconds=15)) == [1, 2, 3]
    assert thinned(store, since=began + timedelta(days=1)) == []


def test_many_are_thinned_evenly_and_the_newest_is_among_them(store: Store, clock: ManualClock) -> None:
    began = clock.held()
    for number in range(101):
        keep(store, "w", left=number)
        clock.advance(5)
    before = began - timedelta(seconds=1)
    for last, until in ((100, None), (50, began + timedelta(seconds=252))):
        found = thinned(store, since=before, until=until)
        assert (len(found), found[-1]) == (10, last)
        assert {after - one for one, after in pairwise(found)} <= {last // 10, last // 10 + 1, last // 10 - 1}


def test_where_nothing_was_sampled_nothing_is_made_up(store: Store, clock: ManualClock) -> None:
    began = clock.held()
    for number in range(12):
        keep(store, "w1", left=number)
        keep(store, "w2", left=100 + number)
        clock.advance(1 if number != 10 else 1000)
    found = thinned(store, since=began - timedelta(seconds=1))
    assert len(found) == 2, "the first stretch of ten, and the last; of one instant one sample"
    assert {number % 100 for number in found} == {10, 11}


def test_those_of_a_job_are_of_its_kind_between_its_start_and_its_end(app: Penstock, clock: ManualClock) -> None:
    keep(app.store, "w", busy=1)
    clock.advance(1)
    job = app.submit("busy", owner="ada").job
    clock.advance(1)
    keep(app.store, "w", busy=2, idle=3)
    with pytest.raises(JobNotFound):
        app.acting_as(owner("bob")).jobs.samples(job.id)
    clock.advance(1)
    app.jobs.cancel(job.id)
    for number in (4, 5, 6):
        clock.advance(5)
        keep(app.store, "w", busy=number)
    shown = app.acting_as(owner("ada")).jobs.samples(job.id)
    assert [(one.kind, one.data["items"]) for one in shown] == [("busy", 2), ("busy", 4), ("busy", 5)]


def test_those_of_a_job_that_is_not_over_reach_to_now(app: Penstock, clock: ManualClock) -> None:
    job = app.submit("busy").job
    clock.advance(50)
    keep(app.store, "w", busy=7)
    assert [one.data["items"] for one in app.jobs.samples(job.id)] == [7]
