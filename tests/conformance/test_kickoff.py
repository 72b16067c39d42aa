"""Kicking a job off: its work is done in this process, for a while, without any worker."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import ItemContext, ItemStatus, JobContext, JobState, Penstock, owner
from penstock.errors import JobNotFound, TransitionRefused
from penstock.store.engine import Store
from penstock.testing.invariants import violations
from tests.on_store import OnStore

SHORT, LONG = 0.15, 30.0
ROUNDS = 60


@pytest.fixture
def app(store: Store, tmp_path: Path) -> Iterator[Penstock]:
    """Whatever a test did, the rows are true afterwards."""
    yield OnStore(store, tmp_path)
    assert violations(store) == []


class Calls:
    """How often each input was worked on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.made: Counter[Any] = Counter()

    def note(self, item: ItemContext) -> int:
        with self._lock:
            self.made[item.input] += 1
            return self.made[item.input]


def wait_until_stopped(item: ItemContext) -> None:
    """What a handler in a thread does that waits for something that never comes."""
    never = threading.Event()
    while not never.wait(0.005):
        item.check()


def test_a_planned_job_is_brought_to_its_end_by_kicking_again_and_again(app: Penstock) -> None:
    calls = Calls()

    @app.kind("rows")
    class Rows:
        def plan(self, job: JobContext) -> Iterator[int]:
            yield from range(300)

        def process(self, item: ItemContext) -> int:
            # Two of them outlast the time of a kick, so that one cannot be enough.
            if calls.note(item) == 1 and item.input in (100, 200):
                wait_until_stopped(item)
            return int(item.input)

        def finalize(self, job: JobContext) -> int:
            return sum(job.results())

    job = app.submit("rows").job
    kicks = 0
    while not job.finished and kicks < ROUNDS:
        job = app.jobs.kickoff(job.id, duration=SHORT)
        kicks += 1
    assert (job.state, job.result) == (JobState.SUCCEEDED, sum(range(300)))
    assert kicks > 1
    assert {one for one, times in calls.made.items() if times > 1} <= {100, 200}
    assert [(one.status, one.attempts) for one in app.items.list(job.id)] == [(ItemStatus.DONE, 1)] * 300


def test_what_may_not_be_kicked_off(app: Penstock) -> None:
    app.kind("one")(lambda item: item.input)
    created = app.submit("one", 1, hold=True).job
    paused = app.jobs.pause(app.submit("one", 2).job.id)
    with pytest.raises(TransitionRefused, match="created: submit it"):
        app.jobs.kickoff(created.id)
    with pytest.raises(TransitionRefused, match="paused: resume it"):
        app.jobs.kickoff(paused.id)
    assert [app.jobs.get(one.id).state for one in (created, paused)] == [JobState.CREATED, JobState.PAUSED]
    assert app.jobs.kickoff(app.jobs.release(created.id).id, duration=LONG).result == 1
    assert app.jobs.kickoff(app.jobs.resume(paused.id).id, duration=LONG).result == 2


def test_a_finished_one_is_answered_as_it_is(app: Penstock) -> None:
    calls = Calls()
    app.kind("one")(calls.note)
    done = app.jobs.kickoff(app.submit("one", 1).job.id, duration=LONG)
    assert (done.state, done.result) == (JobState.SUCCEEDED, 1)
    canceled = app.jobs.cancel(app.submit("one", 2).job.id)
    assert app.jobs.kickoff(done.id) == done
    assert app.jobs.kickoff(canceled.id) == canceled
    assert calls.made == {1: 1}


def test_somebody_elses_job_is_not_there(app: Penstock) -> None:
    calls = Calls()
    app.kind("one")(calls.note)
    job = app.submit("one", 1, owner="ann").job
    with pytest.raises(JobNotFound):
        app.acting_as(owner("bob")).jobs.kickoff(job.id)
    assert (app.jobs.get(job.id).state, calls.made) == (JobState.QUEUED, {})
    assert app.acting_as(owner("ann")).jobs.kickoff(job.id, duration=LONG).state is JobState.SUCCEEDED


def test_other_jobs_of_the_kind_are_not_touched(app: Penstock) -> None:
    calls = Calls()
    app.kind("bulk")(calls.note)
    before = app.submit("bulk", items=range(10), priority=5).job
    mine = app.submit("bulk", items=range(100, 130)).job
    behind = app.submit("bulk", items=range(20, 30)).job
    done = app.jobs.kickoff(mine.id, duration=LONG)
    assert (done.state, done.progress.processed) == (JobState.SUCCEEDED, 30)
    assert set(calls.made) == set(range(100, 130))
    for other in (before, behind):
        assert app.jobs.get(other.id).state is JobState.QUEUED
        assert {(one.status, one.attempts) for one in app.items.list(other.id)} == {(ItemStatus.PENDING, 0)}


def test_two_kicks_at_once_do_each_item_once(app: Penstock) -> None:
    calls, together = Calls(), threading.Barrier(2, timeout=LONG)

    def process(item: ItemContext) -> None:
        if item.input in ("left", "right"):
            together.wait()  # only somebody beside us has the other one: each kick runs one item at a time
        calls.note(item)

    app.kind("bulk", concurrency=1)(process)
    job = app.submit("bulk", items=["left", "right", *range(200)]).job
    kicks = [threading.Thread(target=app.jobs.kickoff, args=[job.id], kwargs={"duration": LONG}) for _ in range(2)]
    for kick in kicks:
        kick.start()
    for kick in kicks:
        kick.join()
    assert app.jobs.get(job.id).state is JobState.SUCCEEDED
    assert calls.made == dict.fromkeys(["left", "right", *range(200)], 1)


@pytest.mark.parametrize("place", ["threads", "event loop"])
def test_what_is_in_hand_when_the_time_is_over_is_handed_back_and_is_no_try(app: Penstock, place: str) -> None:
    begun: list[int] = []
    ready = threading.Event()

    def in_thread(item: ItemContext) -> None:
        begun.append(item.attempt)
        if not ready.is_set():
            wait_until_stopped(item)

    async def on_loop(item: ItemContext) -> None:
        begun.append(item.attempt)
        if not ready.is_set():
            await asyncio.Event().wait()

    app.kind("long", retries=0, concurrency=2)(in_thread if place == "threads" else on_loop)
    job = app.submit("long", items=range(5)).job
    for _ in range(ROUNDS):
        assert app.jobs.kickoff(job.id, duration=SHORT).progress.processed == 0
        items = app.items.list(job.id)
        assert [(one.status, one.attempts) for one in items] == [(ItemStatus.PENDING, 0)] * 5
        assert not any(one.last_error for one in items)
        if len(begun) > 2:  # the same ones were begun in more than one kick
            break
    assert len(begun) > 2
    assert set(begun) == {1}
    ready.set()
    assert app.jobs.kickoff(job.id, duration=LONG).state is JobState.SUCCEEDED
