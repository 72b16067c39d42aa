"""How tries end in a real worker: what a handler raises or answers, and the limits it passes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import update

from penstock import (
    ItemContext,
    ItemStatus,
    JobState,
    Penstock,
    Permanent,
    Retryable,
)
from penstock.errors import StoreRefused, StoreUnavailable
from penstock.lifecycle import KilledBy
from penstock.operations.record import record
from penstock.store.tables import job_items
from penstock.worker import recorder
from tests.integration import handlers
from tests.integration.finished_jobs import PATIENCE, finished


def test_an_unexpected_exception_is_retried_and_keeps_its_traceback(app: Penstock) -> None:
    @app.kind("breaks", retries=2, backoff="1ms fixed")
    def breaks(item: ItemContext) -> None:
        raise KeyError("the-missing-key")

    job = app.submit("breaks").job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    assert (done.state, done.retries, done.error_code) == (JobState.FAILED, 2, "PROCESSING_ERROR")
    assert done.last_error == "KeyError: 'the-missing-key'"
    (item,) = app.items.list(job.id)
    assert item.attempts == 3
    assert item.traceback is not None
    assert "in breaks" in item.traceback


def test_retry_after_is_the_least_that_is_waited(app: Penstock) -> None:
    @app.kind("busy", retries=1, backoff="1ms fixed")
    def busy(item: ItemContext) -> str:
        if item.attempt == 1:
            raise Retryable("busy", code="SHOP_BUSY", retry_after=0.4)
        return "ok"

    job = app.submit("busy").job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    assert done.result == "ok"
    # From start to start: the wait counts from the change, and its history row is written a moment after it.
    first, second = (one.at for one in app.jobs.history(job.id) if one.to_state is JobState.RUNNING)
    assert (second - first).total_seconds() >= 0.4


def test_a_kind_classifies_its_own_errors(app: Penstock) -> None:
    def classify(error: BaseException) -> BaseException:
        return Permanent("the page is gone", code="GONE") if isinstance(error, LookupError) else error

    @app.kind("classified", classify=classify)
    def classified(item: ItemContext) -> None:
        raise LookupError("410")

    job = app.submit("classified").job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    assert (done.state, done.retries, done.error_code) == (JobState.FAILED, 0, "GONE")
    (item,) = app.items.list(job.id)
    assert "LookupError: 410" in (item.traceback or "")


def test_a_result_that_is_not_json_fails_its_item_only(app: Penstock) -> None:
    @app.kind("strange")
    def strange(item: ItemContext) -> object:
        return object() if item.position == 2 else "fine"

    job = app.submit("strange", items=[1, 2, 3]).job
    assert app.drain(timeout=PATIENCE)
    assert finished(app, job).progress.failed == 1
    assert [item.error_code for item in app.items.list(job.id)] == [None, "PAYLOAD_NOT_STORABLE", None]


def test_a_late_outcome_in_a_slice_does_not_keep_the_others(app: Penstock) -> None:
    long_ago = datetime(2001, 1, 1, tzinfo=UTC)
    overtaken_once = threading.Event()

    @app.kind("overtaken")
    def overtaken(item: ItemContext) -> str:
        if item.position == 2 and not overtaken_once.is_set():
            theirs = update(job_items).where(job_items.c.id == item.id).values(lease=uuid4(), lock_expires_at=long_ago)
            app.store.write(lambda one: one.execute(theirs))
            overtaken_once.set()
        return "fine"

    with app.working() as worker:
        worker.signals.listen()
        job = app.submit("overtaken", items=[1, 2, 3]).job
        assert overtaken_once.wait(PATIENCE)
        assert worker.signals.wait("recorded", timeout=PATIENCE)
        app.system.sweep()
        assert finished(app, job).progress.done == 3
    assert [(one.attempts, one.deaths) for one in app.items.list(job.id)] == [(1, 0), (1, 1), (1, 0)]


def test_a_result_the_database_refuses_fails_its_item_only(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    real = record

    def refusing(transaction: Any, batch: Any, caller: Any, **named: Any) -> Any:
        if any(one.outcome.result == '"poison"' for one in batch):
            raise StoreRefused("the database will not have it")
        return real(transaction, batch, caller, **named)

    monkeypatch.setattr(recorder, "record", refusing)

    @app.kind("poison")
    async def poison(item: ItemContext) -> str:
        return "poison" if item.position == 7 else "fine"

    job = app.submit("poison", items=list(range(20))).job
    assert app.drain(timeout=PATIENCE)
    assert finished(app, job).progress.failed == 1
    (bad,) = app.items.list(job.id, statuses=[ItemStatus.ERROR])
    assert (bad.position, bad.error_code) == (7, "RESULT_NOT_STORABLE")


def test_a_database_that_refuses_everything_is_asked_again_later(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right that was taken away, say: no result is to blame, and outcomes are kept until it is given again."""
    real = record

    def refusing(transaction: Any, batch: Any, caller: Any, **named: Any) -> Any:
        if worker.signals.count("failed") < 2:
            raise StoreRefused("permission denied for table jobs")
        return real(transaction, batch, caller, **named)

    monkeypatch.setattr(recorder, "record", refusing)
    app.kind("noop", concurrency=2)(lambda item: item.input)
    job = app.submit("noop", items=["one", "two"]).job
    worker = app.worker()
    worker.signals.listen()
    worker.start()
    try:
        assert worker.signals.wait("failed", times=2, timeout=PATIENCE), "it went round and round"
        assert finished(app, job).progress.done == 2
    finally:
        worker.stop()


def test_outcomes_are_kept_while_the_database_is_away(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failures = record, iter(range(3))

    def away(transaction: Any, batch: Any, caller: Any, **named: Any) -> Any:
        if next(failures, None) is not None:
            raise StoreUnavailable("the database is away")
        return real(transaction, batch, caller, **named)

    monkeypatch.setattr(recorder, "record", away)
    ran: list[int] = []

    @app.kind("once")
    async def once(item: ItemContext) -> None:
        ran.append(item.position)

    job = app.submit("once", items=[1, 2, 3]).job
    assert app.drain(timeout=PATIENCE)
    assert finished(app, job).state is JobState.SUCCEEDED
    assert sorted(ran) == [1, 2, 3]


# Limits ---------------------------------------------------------------------------------------------------------------


def test_past_its_time_limit_a_coroutine_is_cancelled(app: Penstock) -> None:
    cancelled = threading.Event()

    @app.kind("sleepy", timeout="50ms", retries=1, backoff="1ms fixed")
    async def sleepy(item: ItemContext) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    job = app.submit("sleepy").job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    assert (done.state, done.killed_by, done.error_code) == (JobState.FAILED, KilledBy.TIMEOUT, "WORKER_TIMEOUT")
    assert done.retries == 1
    assert cancelled.is_set()


def test_a_handlers_own_timeout_error_is_not_ours(app: Penstock) -> None:
    @app.kind("its-own", timeout="1m", retries=0)
    async def its_own(item: ItemContext) -> None:
        raise TimeoutError("the shop did not answer")

    job = app.submit("its-own").job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    assert (done.killed_by, done.error_code) == (None, "PROCESSING_ERROR")


def test_past_its_time_limit_a_thread_is_given_up_and_others_go_on(app: Penstock) -> None:
    release = threading.Event()

    @app.kind("stuck", timeout="50ms", retries=0, concurrency=1)
    def stuck(item: ItemContext) -> str:
        if item.position == 1:
            release.wait(PATIENCE)
        return "done"

    job = app.submit("stuck", items=[1, 2, 3]).job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    release.set()
    assert (done.progress.processed, done.progress.failed) == (3, 1)
    assert app.items.list(job.id)[0].error_code == "WORKER_TIMEOUT"


@pytest.mark.parametrize(
    ("handler", "limits", "killed_by", "code"),
    [
        (handlers.spin, {"timeout": "300ms"}, KilledBy.TIMEOUT, "WORKER_TIMEOUT"),
        (handlers.swell, {"memory_limit": "300MiB"}, KilledBy.OOM, "WORKER_OOM"),
        (handlers.vanish, {}, KilledBy.WORKER_CRASH, "WORKER_CRASH"),
    ],
)
def test_a_process_past_its_limits_is_killed_and_the_worker_lives(
    app: Penstock, handler: Callable[[ItemContext], object], limits: dict[str, Any], killed_by: KilledBy, code: str
) -> None:
    app.kind("bad", runs_in="processes", retries=1, backoff="1ms fixed", concurrency=1, **limits)(handler)
    app.kind("good", runs_in="processes", concurrency=1)(handlers.double)
    bad, good = app.submit("bad", {}).job, app.submit("good", {"n": 4}).job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, bad)
    assert (done.state, done.retries, done.killed_by, done.error_code) == (JobState.FAILED, 1, killed_by, code)
    assert done.killed_reason == done.last_error
    assert finished(app, good).result == 8


def test_an_error_raised_in_a_process_keeps_its_code(app: Penstock) -> None:
    app.kind("refuse", runs_in="processes", concurrency=1)(handlers.refuse)
    job = app.submit("refuse", {}).job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    assert (done.state, done.retries, done.error_code) == (JobState.FAILED, 0, "NO_SUCH_THING")
