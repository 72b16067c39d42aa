"""No handler, plan, finalize or classify keeps a lane, a slot or the loop: what does not end is ended, and said."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock import ItemContext, ItemStatus, JobState, Penstock, Settings
from penstock.errors import TimeLimitExceeded
from penstock.runners.contract import Call
from penstock.runners.threads import ThreadRunner
from penstock.testing.invariants import violations
from penstock.worker.lease_keeper import LeaseKeeper
from tests.integration import handlers
from tests.integration.hostile import StrRaises
from tests.integration.small_workers import PATIENCE, ended


def test_a_coroutine_that_will_not_be_cancelled_loses_its_place(small: Penstock, release: threading.Event) -> None:
    @small.kind("stubborn", timeout="50ms", retries=0, concurrency=1)
    async def stubborn(item: ItemContext) -> str:
        while item.input == "stubborn" and not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "fine"

    job = small.submit("stubborn", items=["stubborn", "fine", "fine"]).job
    with small.working() as worker:
        assert ended(small, job).progress.done == 2
        assert [lane.executor.abandoned for lane in worker._lanes] == [1]
    assert [item.error_code for item in small.items.list(job.id)] == ["WORKER_TIMEOUT", None, None]


def test_a_handler_that_keeps_the_loop_is_left_with_it(small: Penstock, release: threading.Event) -> None:
    waiting = threading.Event()

    @small.kind("keeps", timeout="50ms", retries=0)
    async def keeps(item: ItemContext) -> str:
        if item.input == "keep":
            assert waiting.wait(PATIENCE)
            release.wait(PATIENCE)
        return "fine"

    tries: list[int] = []

    @small.kind("neighbour", retries=0)
    async def neighbour(item: ItemContext) -> str:
        tries.append(item.attempt)
        if len(tries) == 1:
            waiting.set()
            await asyncio.Event().wait()
        return "fine"

    beside = small.submit("neighbour").job
    with capture_logs() as lines, small.working() as worker:
        assert waiting.wait(PATIENCE)
        job = small.submit("keeps", items=["keep", "fine"]).job
        assert ended(small, beside).result == "fine"
        assert ended(small, job).progress.done == 1
        assert ended(small, small.submit("keeps", "fine").job).result == "fine"
        assert sum(lane.executor.abandoned for lane in worker._lanes) == 1
    assert small.items.list(job.id)[0].error_code == "WORKER_TIMEOUT"
    assert tries == [1, 1], "what the neighbour lost was not its own try"
    [said] = [line for line in lines if "keeps the event loop, and" in line["event"]]
    assert "release.wait" in said["stack"], "it says where"


def test_threads_that_were_given_up_are_bounded(quick: Settings, release: threading.Event) -> None:
    app = Penstock(settings=quick.model_copy(update={"most_abandoned_threads": 1}))
    ran: list[int] = []

    @app.kind("hangs", timeout="20ms", retries=0, concurrency=1)
    def hangs(item: ItemContext) -> str:
        ran.append(item.position)
        if item.position <= 2:
            release.wait(PATIENCE)
        return "fine"

    job = app.submit("hangs", items=[1, 2, 3, 4]).job
    with app.working() as worker:
        worker.signals.listen()
        [lane] = worker._lanes
        while not lane.executor.runners[0].is_exhausted:
            assert worker.signals.wait("watched", worker.signals.count("watched") + 1, PATIENCE)
        assert worker.signals.wait("watched", worker.signals.count("watched") + 2, PATIENCE)
        assert (ran, lane.executor.abandoned) == ([1, 2], 2)
        assert app.jobs.get(job.id).progress.processed == 2, "those that were given up have their outcome all the same"
        release.set()
        assert ended(app, job).progress.done == 2
    assert [item.attempts for item in app.items.list(job.id)] == [1, 1, 1, 1], (
        "what waited was handed back without a try"
    )
    app.close()


def test_a_call_that_a_runner_loses_is_noticed(small: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ThreadRunner.start

    def start(self: ThreadRunner, calls: list[Call]) -> None:
        real(self, [call for call in calls if call.owner.position != 2])

    monkeypatch.setattr(ThreadRunner, "start", start)
    small.kind("lossy", retries=0)(handlers.same)
    job = small.submit("lossy", items=[1, 2, 3]).job
    with small.working():
        assert ended(small, job).progress.done == 2
    assert [item.error_code for item in small.items.list(job.id)] == [None, "CALL_LOST", None]


def test_without_a_time_limit_what_runs_is_left_alone(small: Penstock, release: threading.Event) -> None:
    begun = threading.Event()

    @small.kind("patient", retries=0)
    def patient(item: ItemContext) -> str:
        begun.set()
        assert release.wait(PATIENCE)
        return "fine"

    job = small.submit("patient").job
    with small.working() as worker:
        worker.signals.listen()
        assert begun.wait(PATIENCE)
        assert worker.signals.wait("watched", 5, PATIENCE)
        assert small.jobs.get(job.id).state is JobState.RUNNING
        release.set()
        assert ended(small, job).result == "fine"


def test_leases_are_not_renewed_past_time_limit_and_grace(small: Penstock) -> None:
    small.kind("k")(handlers.same)
    small.submit("k", items=[1, 2])
    worker = small.worker()
    renewed: list[int] = []

    class Held:
        kind = small.kinds.get("k")
        controllers = type("Steering", (), {"lease_seconds": staticmethod(lambda count: 60.0)})

        @property
        def executor(self) -> Held:
            return self

        def calls_in_hand(self) -> list[Call]:
            return calls

        def drop(self, **named: Any) -> None:
            renewed.extend(named["items"])

    from penstock.operations.claim import claim

    claimed = claim(small.store, "k", worker.name, size=2, lease_seconds=60.0).items
    calls = [Call(one, handlers.same, None) for one in claimed]
    calls[0].deadline = 0.0
    LeaseKeeper(small.store, [Held()], timeout_grace=1.0).beat()  # type: ignore[list-item]
    assert [call.renew_at > 0 for call in calls] == [False, True]
    assert renewed == []


# What happens together ------------------------------------------------------------------------------------------------


def test_a_late_answer_of_a_thread_that_was_given_up_changes_nothing(app: Penstock, release: threading.Event) -> None:
    @app.kind("late", timeout="50ms", retries=1, backoff="1ms fixed")
    def late(item: ItemContext) -> int:
        if item.attempt == 1:
            release.wait(PATIENCE)
        return item.attempt

    job = app.submit("late").job
    with capture_logs() as lines, app.working() as worker:
        done = ended(app, job)
        assert (done.result, done.retries) == (2, 1)
        release.set()
        [lane] = worker._lanes
        worker.signals.listen()
        while lane.executor.abandoned:
            assert worker.signals.wait("watched", worker.signals.count("watched") + 1, PATIENCE)
    assert (app.jobs.get(job.id).result, app.jobs.get(job.id).state) == (2, JobState.SUCCEEDED)
    assert any("was given up has ended" in line["event"] for line in lines)
    assert violations(app.store) == []


@pytest.mark.parametrize("first", ["cancel", "timeout"])
def test_canceled_while_its_time_runs_out_it_has_one_end(app: Penstock, release: threading.Event, first: str) -> None:
    begun = threading.Event()

    @app.kind("both", timeout="1h", retries=1, backoff="1h fixed")
    def both(item: ItemContext) -> None:
        begun.set()
        release.wait(PATIENCE)

    job = app.submit("both").job
    with app.working() as worker:
        worker.signals.listen()
        assert begun.wait(PATIENCE)
        [lane] = worker._lanes
        [call] = lane.executor.calls_in_hand()
        if first == "timeout":
            lane.executor.overrun(call, TimeLimitExceeded("too late"))
        app.jobs.cancel(job.id)
        lane.executor.overrun(call, TimeLimitExceeded("too late"))
        assert worker.signals.wait("recorded", timeout=PATIENCE)
        release.set()
    assert app.jobs.get(job.id).state is JobState.CANCELED
    assert violations(app.store) == []


def test_paused_while_its_time_runs_out_it_goes_on_when_resumed(app: Penstock, release: threading.Event) -> None:
    begun = threading.Event()

    @app.kind("held", timeout="1h", retries=1, backoff="1ms fixed")
    def held(item: ItemContext) -> int:
        if item.attempt == 1:
            begun.set()
            release.wait(PATIENCE)
        return item.attempt

    job = app.submit("held", items=[1]).job
    with app.working() as worker:
        worker.signals.listen()
        assert begun.wait(PATIENCE)
        app.jobs.pause(job.id)
        [lane] = worker._lanes
        lane.executor.calls_in_hand()[0].deadline = 0.0
        assert worker.signals.wait("recorded", timeout=PATIENCE)
        [item] = app.items.list(job.id)
        assert (item.status, item.error_code, item.attempts) == (ItemStatus.PENDING, "WORKER_TIMEOUT", 1)
        app.jobs.resume(job.id)
        assert ended(app, job).progress.done == 1
    assert violations(app.store) == []


# Gauges and subscribers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gauge", ["raises", "leaves", "answers a trap"])
def test_a_gauge_that_fails_costs_no_sample(small: Penstock, gauge: str) -> None:
    def read() -> Any:
        match gauge:
            case "raises":
                raise StrRaises
            case "leaves":
                raise SystemExit(3)
        return {"trap": object()}

    @small.kind("k")
    class Same:
        process = staticmethod(handlers.same)
        gauges = staticmethod(read)

    small.submit("k", 1)
    assert small.drain(timeout=PATIENCE)
    [sample] = small.system.samples(since=datetime.now(UTC) - timedelta(hours=1), kind="k")
    assert (sample.data["gauges"], sample.data["abandoned"]) == (None, 0)


@pytest.mark.parametrize("error", [SystemExit, StrRaises, GeneratorExit])
def test_a_subscriber_that_raises_anything_is_asked_again(small: Penstock, error: type[BaseException]) -> None:
    heard: list[object] = []

    @small.messages.subscribe("bad")
    def bad(message: Any) -> None:
        raise error

    @small.messages.subscribe("good")
    def good(message: Any) -> None:
        heard.append(message.payload)

    small.messages.publish("bad", 1)
    small.messages.publish("good", 2)
    small.system.sweep()
    assert heard == [2]
    assert (small.messages.backlog().waiting, small.messages.backlog().failing) == (1, 1)
    assert error.__name__ in (small.messages.backlog().last_error or "")


def test_the_watch_for_deadlines_takes_no_call_from_a_thread_that_waits() -> None:
    """The watch still waits for the deadline of a call that has ended when the next one comes."""
    ended = threading.Semaphore(0)
    runner = ThreadRunner(1, lambda calls: ended.release(len(calls)), idle_seconds=600.0)
    try:
        for _ in range(3):
            runner.start([Call(None, lambda _: None, None, timeout=600.0)])
            assert ended.acquire(timeout=PATIENCE)
            while runner._idle == 0:  # the thread is on its way back
                threading.Event().wait(0.001)
    finally:
        runner.close()
