"""Jobs, handlers and workers that are stopped."""

from __future__ import annotations

import asyncio
import threading

from penstock import (
    ItemContext,
    ItemStatus,
    JobState,
    Penstock,
    owner,
)
from penstock.lifecycle import KilledBy
from penstock.testing.invariants import violations
from tests.integration import handlers
from tests.integration.finished_jobs import PATIENCE, finished


def test_cancel_stops_running_coroutines_and_nothing_new_starts(app: Penstock) -> None:
    started, stopped = threading.Semaphore(0), threading.Semaphore(0)

    @app.kind("endless", concurrency=2)
    async def endless(item: ItemContext) -> None:
        started.release()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.release()

    with app.working():
        job = app.submit("endless", items=list(range(10)), owner="ada").job
        assert started.acquire(timeout=PATIENCE)
        assert started.acquire(timeout=PATIENCE)
        canceled = app.acting_as(owner("ada")).jobs.cancel(job.id, reason="changed my mind")
        assert stopped.acquire(timeout=PATIENCE)
        assert stopped.acquire(timeout=PATIENCE)
    assert not started.acquire(blocking=False), "an item started after the cancel"
    assert (canceled.state, canceled.killed_by, canceled.killed_reason) == (
        JobState.CANCELED,
        KilledBy.USER,
        "changed my mind",
    )
    statuses = {item.status for item in app.items.list(job.id)}
    assert statuses == {ItemStatus.PENDING}
    assert violations(app.store) == []


def test_cancel_kills_the_process_that_works_on_it(app: Penstock) -> None:
    app.kind("spin", runs_in="processes", concurrency=1)(handlers.spin)
    app.kind("good")(handlers.double)
    with app.working() as worker:
        worker.signals.listen()
        job = app.submit("spin", {}).job
        assert worker.signals.wait("claimed", timeout=PATIENCE)
        app.jobs.cancel(job.id)
        assert worker.signals.wait("recorded", timeout=PATIENCE), "the killed call was not handed back"
        assert finished(app, app.submit("good", {"n": 1}).job).result == 2
    assert app.jobs.get(job.id).state is JobState.CANCELED


def test_a_thread_learns_of_a_cancel_when_it_looks(app: Penstock) -> None:
    started, ended = threading.Event(), threading.Event()

    @app.kind("looks")
    def looks(item: ItemContext) -> None:
        started.set()
        try:
            while True:
                item.check()
        finally:
            ended.set()

    with app.working():
        job = app.submit("looks").job
        assert started.wait(PATIENCE)
        app.jobs.cancel(job.id)
        assert ended.wait(PATIENCE)
    assert app.jobs.get(job.id).state is JobState.CANCELED


def test_paused_claimed_items_finish_and_no_others_start(app: Penstock) -> None:
    started, go_on = threading.Semaphore(0), threading.Event()
    ran: list[int] = []

    @app.kind("gated", concurrency=1)
    def gated(item: ItemContext) -> None:
        ran.append(item.position)
        started.release()
        go_on.wait(PATIENCE)

    with app.working() as worker:
        worker.signals.listen()
        job = app.submit("gated", items=[1, 2, 3]).job
        assert started.acquire(timeout=PATIENCE)
        app.jobs.pause(job.id)
        go_on.set()
        assert worker.signals.wait("recorded", timeout=PATIENCE)
        assert app.jobs.get(job.id).state is JobState.PAUSED
        assert ran == [1]
        app.jobs.resume(job.id)
        assert finished(app, job).progress.processed == 3
    assert ran == [1, 2, 3]


def test_a_stopping_worker_finishes_what_runs_and_hands_back_the_rest(app: Penstock) -> None:
    started, go_on = threading.Event(), threading.Event()

    @app.kind("slow", concurrency=1)
    def slow(item: ItemContext) -> str:
        started.set()
        go_on.wait(PATIENCE)
        return "done"

    job = app.submit("slow", items=list(range(5))).job
    worker = app.worker()
    worker.start()
    assert started.wait(PATIENCE)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    go_on.set()
    stopping.join(PATIENCE)
    items = app.items.list(job.id)
    assert [item.status for item in items] == [ItemStatus.DONE] + [ItemStatus.PENDING] * 4
    assert [item.attempts for item in items] == [1, 0, 0, 0, 0], "handing back is not a try"
    assert violations(app.store) == []
    assert app.drain(timeout=PATIENCE)
    assert finished(app, job).state is JobState.SUCCEEDED


def test_after_its_grace_a_stopping_worker_hands_back_what_still_runs(app: Penstock) -> None:
    started = threading.Event()

    @app.kind("endless")
    async def endless(item: ItemContext) -> str:
        if item.params == "first":
            started.set()
            await asyncio.Event().wait()
        return "done"

    job = app.submit("endless", "first").job
    worker = app.worker()
    worker.start()
    assert started.wait(PATIENCE)
    worker.stop(grace=0)
    (item,) = app.items.list(job.id)
    assert (item.status, item.attempts) == (ItemStatus.PENDING, 0)
    assert app.jobs.get(job.id).state is JobState.RUNNING
    assert violations(app.store) == []
