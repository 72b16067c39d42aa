"""Slices in a process that somebody else has started: as much as is allowed, in a name of their own, all written."""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from penstock import ItemContext, ItemStatus, JobState, Penstock
from penstock.errors import ConfigurationError
from penstock.operations.claim import claim
from penstock.store.engine import Store
from tests.on_store import OnStore
from tests.waiting import eventually

HOLDER = "celery:some-task@some-host"


@pytest.fixture(params=["file_store", "postgres_store"])
def shared_store(request: pytest.FixtureRequest) -> Store:
    """Each database that several processes can share."""
    store: Store = request.getfixturevalue(request.param)
    return store


def count(item: ItemContext) -> int:
    return item.position


def test_a_slice_claims_as_much_as_it_may_and_writes_all_of_it(shared_store: Store, tmp_path: Path) -> None:
    app = OnStore(shared_store, tmp_path)
    app.kind("count")(count)
    job = app.submit("count", items=range(25)).job
    worker = app.slice_worker()
    assert worker.work_off("count", holder=HOLDER, items=10) == 10
    assert app.jobs.get(job.id).progress.processed == 10
    assert not any(item.locked_by for item in app.items.list(job.id))
    assert worker.work_off("count", holder=HOLDER, items=1_000) == 15
    assert app.jobs.get(job.id).state is JobState.SUCCEEDED
    assert worker.work_off("count", holder=HOLDER, items=10) == 0, "a doubled one finds nothing"
    [started] = [line for line in app.jobs.history(job.id) if line.to_state is JobState.RUNNING]
    assert started.actor_id == HOLDER


def test_what_its_lanes_did_is_there_to_be_seen(shared_store: Store, tmp_path: Path) -> None:
    app = OnStore(shared_store, tmp_path, sweep_seconds=0.05)
    app.kind("count")(count)
    begun = app.submit("count", items=range(5)).job.created_at
    app.slice_worker().work_off("count", holder=HOLDER, items=5)
    eventually(lambda: app.system.samples(since=begun - timedelta(seconds=1)))
    sample = app.system.samples(since=begun - timedelta(seconds=1))[0]
    assert (sample.kind, sample.data["store_errors"]) == ("count", 0)
    assert sample.worker.endswith(f":{os.getpid()}")


def test_plain_functions_run_one_at_a_time_and_others_as_their_kind_says(file_store: Store, tmp_path: Path) -> None:
    app = OnStore(file_store, tmp_path)
    together = threading.Barrier(2)
    threads: set[int] = set()
    beside = threading.Event()

    @app.kind("one")
    def one(_: ItemContext) -> None:
        threads.add(threading.get_ident())
        if len(threads) == 1:
            beside.wait(0.05)  # for another one to begin, if it can
        else:
            beside.set()

    @app.kind("two", concurrency=2)
    def two(_: ItemContext) -> None:
        together.wait(timeout=60)

    app.submit("one", items=range(5))
    app.submit("two", items=range(6))
    worker = app.slice_worker()
    assert worker.work_off("one", holder=HOLDER, items=5) == 5
    assert len(threads) == 1
    assert worker.work_off("two", holder=HOLDER, items=6) == 6


def test_two_slices_at_once_in_one_process_share_the_work(shared_store: Store, tmp_path: Path) -> None:
    app = OnStore(shared_store, tmp_path)
    ran: list[int] = []
    app.kind("count")(lambda item: ran.append(item.position))
    job = app.submit("count", items=range(200)).job
    worker = app.slice_worker()
    names = [f"{HOLDER}-{number}" for number in range(2)]
    threads = [
        threading.Thread(target=worker.work_off, args=["count"], kwargs={"holder": name, "items": 500})
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    # One that found the other's claim under way may have ended: the next one takes the rest.
    worker.work_off("count", holder=HOLDER, items=500)
    assert app.jobs.get(job.id).state is JobState.SUCCEEDED
    assert sorted(ran) == list(range(1, 201))


def test_a_handler_that_does_not_stop_is_told_of_when_the_slice_is_over(file_store: Store, tmp_path: Path) -> None:
    app = OnStore(file_store, tmp_path, heartbeat_seconds=0.05)
    begun, end = threading.Event(), threading.Event()

    @app.kind("hang")
    def hang(_: ItemContext) -> None:
        begun.set()
        end.wait(60)

    job = app.submit("hang", items=[1]).job
    worker = app.slice_worker()
    assert not worker.has_hung_threads()
    canceling = threading.Thread(target=lambda: begun.wait(60) and app.jobs.cancel(job.id))
    canceling.start()
    assert worker.work_off("hang", holder=HOLDER, items=1) == 1
    canceling.join()
    assert worker.is_idle()
    assert worker.has_hung_threads()
    end.set()
    eventually(lambda: not worker.has_hung_threads())


def test_a_database_in_memory_is_refused(memory_store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="in memory") as caught:
        OnStore(memory_store, tmp_path).slice_worker()
    assert caught.value.code == "DATABASE_NOT_SHARED"


def test_a_dead_holder_is_taken_back_from_without_a_try(migrated_url: str) -> None:
    app = Penstock(migrated_url)
    try:
        app.kind("count")(count)
        job = app.submit("count", items=range(3)).job
        claim(app.store, "count", HOLDER, size=2, lease_seconds=600.0)
        assert app.take_back("celery:another@host") == 0
        assert app.take_back(HOLDER) == 2
        items = app.items.list(job.id)
        assert [(item.status, item.deaths, item.locked_by) for item in items[:2]] == [(ItemStatus.PENDING, 1, None)] * 2
        assert app.drain(timeout=60)
        assert [item.attempts for item in app.items.list(job.id)] == [1, 1, 1]
    finally:
        app.close()


def test_a_forked_process_leaves_its_parents_connections_alone(migrated_url: str) -> None:
    app = Penstock(migrated_url)
    app.kind("count")(count)
    app.submit("count")
    parents = app.store
    child = os.fork()
    if child == 0:
        try:
            type(parents).close = lambda store: os._exit(2 if store is parents else 0)  # type: ignore[assignment, method-assign]
            if app._runtime._store is not parents:
                os._exit(3)
            app.close()  # what the parent has opened is not closed here
            app._runtime.use_store(parents)
            app._runtime._opened_in = os.getppid()
            app.submit("count")
            os._exit(0 if app.store is not parents else 4)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(app.jobs.list()) == 2
    app.close()
