"""A real worker on real databases: every kind of handler, every way of ending, every way of being stopped."""

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
    Job,
    JobContext,
    JobState,
    NotFound,
    Penstock,
    Permanent,
    Retryable,
    Settings,
    Skip,
    owner,
)
from penstock.errors import Postponed, StoreRefused, StoreUnavailable
from penstock.lifecycle import KilledBy
from penstock.lifecycle.kind import Kind
from penstock.operations.record import record
from penstock.store.tables import job_items
from penstock.testing.invariants import violations
from penstock.worker import lane, recorder
from penstock.worker.controllers import Controllers
from tests.integration import handlers

PATIENCE = 30.0


def finished(app: Penstock, job: Job) -> Job:
    """The job once it is finished; the invariants hold then."""
    done = app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
    assert done.finished, f"{done.state} after {PATIENCE} s"
    assert violations(app.store) == []
    return done


# Where handlers run ---------------------------------------------------------------------------------------------------


def test_a_coroutine_a_function_and_a_process_all_answer(app: Penstock) -> None:
    app.kind("coroutine")(handlers.double_slowly)
    app.kind("function")(handlers.double)
    app.kind("process", runs_in="processes", concurrency=1)(handlers.double)
    app.kind("coroutine-in-process", runs_in="processes", concurrency=1)(handlers.double_slowly)
    jobs = [app.submit(kind.name, {"n": 21}).job for kind in app.kinds]
    assert app.drain(timeout=PATIENCE)
    assert [finished(app, job).result for job in jobs] == [42, 42, 42, 42]


def test_the_history_tells_every_transition_and_who_made_it(app: Penstock) -> None:
    app.kind("double")(handlers.double)
    job = app.acting_as(owner("ada")).submit("double", {"n": 1}).job
    worker = app.worker()
    assert worker.run_until_idle(PATIENCE)
    told = [(one.from_state, one.to_state, one.actor.value, one.actor_id) for one in app.jobs.history(job.id)]
    assert told == [
        (None, JobState.QUEUED, "owner", "ada"),
        (JobState.QUEUED, JobState.RUNNING, "worker", worker.name),
        (JobState.RUNNING, JobState.SUCCEEDED, "worker", worker.name),
    ]


def test_a_plan_its_items_and_the_finalize_step(app: Penstock) -> None:
    @app.kind("sum", backoff="1ms fixed")
    class Sum:
        async def plan(self, job: JobContext) -> Any:
            for number in range(job.params["count"]):
                yield {"n": number}

        async def process(self, item: ItemContext) -> int:
            if item.input["n"] == 5 and item.attempt < 3:
                raise Retryable("not yet")
            if item.input["n"] == 6:
                raise NotFound("no six")
            if item.input["n"] == 7:
                raise Skip("seven is skipped")
            if item.input["n"] == 8:
                raise Permanent("eight never works", code="EIGHT")
            return int(item.input["n"])

        async def finalize(self, job: JobContext) -> dict[str, Any]:
            return {"sum": sum(job.results()), "failed": job.progress.failed}

    job = app.submit("sum", {"count": 2500}).job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    assert done.state is JobState.SUCCEEDED
    assert done.result == {"sum": sum(range(2500)) - 6 - 7 - 8, "failed": 1}
    assert (done.progress.total, done.progress.not_found, done.progress.skipped) == (2500, 1, 1)
    (bad,) = app.items.list(job.id, statuses=[ItemStatus.ERROR])
    assert (bad.input, bad.error_code, bad.attempts) == ({"n": 8}, "EIGHT", 1)


def test_plain_functions_may_plan_and_finalize_too(app: Penstock) -> None:
    @app.kind("plain")
    class Plain:
        def plan(self, job: JobContext) -> list[int]:
            job.say("planning")
            return [1, 2, 3]

        def process(self, item: ItemContext) -> int:
            return int(item.input) * 10

        def finalize(self, job: JobContext) -> list[int]:
            return list(job.results())

    job = app.submit("plain").job
    assert app.drain(timeout=PATIENCE)
    done = finished(app, job)
    assert done.result == [10, 20, 30]
    assert done.message == "planning"


def test_a_job_without_any_item_is_finalized_all_the_same(app: Penstock) -> None:
    @app.kind("empty")
    class Empty:
        def process(self, item: ItemContext) -> None:
            raise AssertionError("there is no item")

        def finalize(self, job: JobContext) -> str:
            return "nothing to do"

    @app.kind("empty-plan")
    class EmptyPlan(Empty):
        def plan(self, job: JobContext) -> list[int]:
            return []

    given = app.submit("empty", items=[]).job
    planned = app.submit("empty-plan").job
    assert app.drain(timeout=PATIENCE)
    assert finished(app, given).result == finished(app, planned).result == "nothing to do"


def test_a_plan_that_breaks_half_way_goes_on_behind_the_last_item_kept(app: Penstock) -> None:
    seen: list[int] = []

    @app.kind("replayed", backoff="1ms fixed")
    class Replayed:
        def plan(self, job: JobContext) -> Any:
            for number in range(2500):
                if number == 2200 and job.attempt == 1:
                    raise Retryable("the source went away")
                yield number

        def process(self, item: ItemContext) -> int:
            return int(item.input)

    @app.kind("seeking", backoff="1ms fixed")
    class Seeking(Replayed):
        def plan(self, job: JobContext, after: int) -> Any:  # type: ignore[override]
            seen.append(after)
            for number in range(after, 2500):
                if number == 2200 and job.attempt == 1:
                    raise Retryable("the source went away")
                yield number

    jobs = [app.submit(kind).job for kind in ("replayed", "seeking")]
    assert app.drain(timeout=PATIENCE)
    for job in jobs:
        assert finished(app, job).progress.total == 2500
        inputs = [item.input for page in (0, 1000, 2000) for item in app.items.list(job.id, after=page, limit=1000)]
        assert inputs == list(range(2500))
    begun, again = seen
    assert begun == 0
    assert 0 < again <= 2200, "the second try goes on behind the last row persisted"


def test_what_was_postponed_was_not_tried(app: Penstock) -> None:
    calls: list[int] = []

    @app.kind("closed-at-first", retries=0)
    def closed_at_first(item: ItemContext) -> int:
        calls.append(item.attempt)
        if len(calls) <= 3:
            raise Postponed("the shop is closed", code="SHOP_CLOSED", retry_after=0)
        return item.attempt

    job = app.submit("closed-at-first").job
    assert app.drain(timeout=PATIENCE)
    assert calls == [1, 1, 1, 1]
    assert (finished(app, job).state, finished(app, job).result) == (JobState.SUCCEEDED, 1)


# How tries end --------------------------------------------------------------------------------------------------------


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


# Being stopped --------------------------------------------------------------------------------------------------------


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


# Hearing of work ------------------------------------------------------------------------------------------------------


def test_an_idle_worker_hears_of_work_from_this_process(app: Penstock) -> None:
    app.kind("double")(handlers.double)
    with app.working() as worker:
        worker.signals.listen()
        finished(app, app.submit("double", {"n": 1}).job)
        assert finished(app, app.submit("double", {"n": 2}).job).result == 4


def test_an_idle_worker_hears_of_work_from_elsewhere(app: Penstock, open_app: Callable[[], Penstock]) -> None:
    app.kind("double")(handlers.double)
    elsewhere = open_app()
    elsewhere.kind("double")(handlers.double)
    with app.working() as worker:
        assert worker.listening.wait(PATIENCE)
        finished(app, app.submit("double", {"n": 1}).job)
        job = elsewhere.submit("double", {"n": 2}).job
        assert finished(app, job).result == 4


def test_a_worker_with_one_connection_gets_everything_done(
    quick_settings: Settings, open_app: Callable[[], Penstock]
) -> None:
    open_app()  # brings the schema
    app = Penstock(settings=quick_settings.model_copy(update={"pool_size": 1}))
    app.kind("double")(handlers.double_slowly)
    try:
        with app.working():
            jobs = [app.submit("double", items=[{"n": 1}] * 200).job for _ in range(3)]
            assert [finished(app, job).progress.done for job in jobs] == [200, 200, 200]
    finally:
        app.close()


def test_two_workers_share_one_job_and_finalize_it_once(app: Penstock, open_app: Callable[[], Penstock]) -> None:
    finalized: list[object] = []

    def register(one: Penstock) -> None:
        @one.kind("shared")
        class Shared:
            async def process(self, item: ItemContext) -> int:
                return int(item.input)

            async def finalize(self, job: JobContext) -> int:
                finalized.append(job.id)
                return sum(job.results())

    other = open_app()
    register(app)
    register(other)
    with app.working(), other.working():
        job = app.submit("shared", items=list(range(3000))).job
        assert finished(app, job).result == sum(range(3000))
    assert finalized == [job.id]


class HoldingOff(Controllers):
    """Begins with a pause, for the kind that is refused everywhere."""

    def __init__(self, kind: Kind, *given: Any, **named: Any) -> None:
        super().__init__(kind, *given, **named)
        if kind.name == "refused":
            self.claim_not_before = float("inf")


def test_a_lane_that_holds_off_claims_nothing_however_it_is_woken(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "Controllers", HoldingOff)
    app.kind("refused")(handlers.double)
    app.kind("other")(handlers.double)
    worker = app.worker()
    worker.start()
    try:
        [held] = [one for one in worker._lanes if one.kind.name == "refused"]
        waits = app.submit("refused", {"n": 1}).job
        for _ in range(3):
            held.completions.wake()
            finished(app, app.submit("other", {"n": 1}).job)
        assert app.jobs.get(waits.id).state is JobState.QUEUED
        held.controllers.claim_not_before = 0.0
        held.completions.wake()
        assert finished(app, waits).result == 2
    finally:
        worker.stop()
