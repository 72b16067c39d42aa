"""No handler, plan, finalize or classify keeps a lane, a slot or the loop: what does not end is ended, and said."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs

from penstock import ItemContext, ItemStatus, Job, JobContext, JobState, Penstock, Permanent, Settings, load_settings
from penstock.errors import TimeLimitExceeded
from penstock.lifecycle import KilledBy
from penstock.runners.contract import Call
from penstock.runners.threads import ThreadRunner
from penstock.testing.invariants import violations
from penstock.worker.lease_keeper import LeaseKeeper
from tests.integration import handlers
from tests.integration.hostile import OwnBase, StrRaises

PATIENCE = 30.0
PLACES = ["threads", "event_loop", "processes"]


@pytest.fixture
def quick(_migrated_sqlite: Path, tmp_path: Path) -> Settings:
    """A SQLite file, and a watchdog that looks often."""
    (tmp_path / "penstock.db").write_bytes(_migrated_sqlite.read_bytes())
    return load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db",
        files_directory=tmp_path / "files",
        heartbeat_seconds=0.05,
        lock_floor_ms=60_000,
        timeout_grace_seconds=0.3,
        stop_grace_seconds=0.0,
    )


@pytest.fixture
def small(quick: Settings) -> Iterator[Penstock]:
    app = Penstock(settings=quick)
    yield app
    app.close()


@pytest.fixture
def patient(quick: Settings) -> Iterator[Penstock]:
    """The same with the usual grace: where nothing hangs, nothing may be given up on a busy machine either."""
    app = Penstock(settings=quick.model_copy(update={"timeout_grace_seconds": 10.0}))
    yield app
    app.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Handlers that hang wait for this, so that nothing of them is left after the test."""
    event = threading.Event()
    yield event
    event.set()


def ended(app: Penstock, job: Job) -> Job:
    done = app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
    assert done.finished, f"{done.state} after {PATIENCE} s"
    return done


# Classify -------------------------------------------------------------------------------------------------------------


def forgets(error: BaseException) -> BaseException:
    return None  # type: ignore[return-value]


def answers_a_class(error: BaseException) -> BaseException:
    return Permanent  # type: ignore[return-value]


def leaves(error: BaseException) -> NoReturn:
    raise SystemExit(3)


def fails_unprintably(error: BaseException) -> NoReturn:
    raise StrRaises


@pytest.mark.parametrize("place", PLACES)
def test_a_classify_that_fails_is_no_more_than_no_classify(patient: Penstock, place: str) -> None:
    handler = handlers.fail_slowly if place == "event_loop" else handlers.fail
    classifies = {"forgets": forgets, "class": answers_a_class, "leaves": leaves, "unprintable": fails_unprintably}
    for name, classify in classifies.items():
        patient.kind(name, retries=0, runs_in=place, concurrency=1, classify=classify)(handler)
    jobs = [patient.submit(name).job for name in classifies]
    with patient.working():
        done = [ended(patient, job) for job in jobs]
    assert {(job.state, job.error_code, job.last_error) for job in done} == {
        (JobState.FAILED, "PROCESSING_ERROR", "LookupError: 410")
    }
    told = [patient.items.list(job.id)[0].traceback or "" for job in jobs]
    assert all("the kind's classify" in text and "LookupError: 410" in text for text in told)


@pytest.mark.parametrize("place", PLACES)
def test_a_classify_that_hangs_is_left_behind(small: Penstock, place: str, release: threading.Event) -> None:
    def classify(error: BaseException) -> BaseException:
        release.wait(PATIENCE)
        return error

    handler = handlers.fail_slowly if place == "event_loop" else handlers.fail
    small.kind("hangs", retries=0, runs_in=place, concurrency=2, classify=classify)(handler)
    job = small.submit("hangs", items=[1, 2, 3]).job
    with small.working() as worker:
        assert ended(small, job).progress.failed == 3
        assert sum(lane.executor.abandoned for lane in worker._lanes) == 3
    assert {item.error_code for item in small.items.list(job.id)} == {"OUTCOME_UNREADABLE"}
    assert "classify" in (small.items.list(job.id)[0].last_error or "")


# Starting an item -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["plan", "finalize"])
def test_a_job_whose_step_was_removed_fails_alone(open_app: Callable[[], Penstock], step: str) -> None:
    old = open_app()

    class Planned:
        def plan(self, job: JobContext) -> list[int]:
            return [1]

        def process(self, item: ItemContext) -> int:
            return 1

    class Finalized:
        def process(self, item: ItemContext) -> int:
            return 1

        def finalize(self, job: JobContext) -> int:
            return 1

    old.kind("report")(Planned if step == "plan" else Finalized)
    stale = old.submit("report", priority=1, **({} if step == "plan" else {"items": []})).job  # type: ignore[arg-type]
    new = open_app()
    new.kind("report")(handlers.same)
    good = [new.submit("report", number).job for number in range(5)]
    assert new.drain(timeout=PATIENCE)
    failed = new.jobs.get(stale.id)
    assert (failed.state, failed.error_code) == (JobState.FAILED, "KIND_UNKNOWN")
    assert f"no {step} step" in (failed.last_error or "")
    assert [new.jobs.get(job.id).result for job in good] == list(range(5))
    assert {item.attempts for job in good for item in new.items.list(job.id)} == {1}
    assert violations(new.store) == []


def test_a_runner_that_cannot_start_a_call_fails_that_call(small: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ThreadRunner.start

    def start(self: ThreadRunner, calls: Any) -> None:
        if any(call.owner.role.value == "plan" for call in calls):
            raise RuntimeError("not today")
        real(self, calls)

    monkeypatch.setattr(ThreadRunner, "start", start)

    @small.kind("mixed", retries=0)
    class Mixed:
        def plan(self, job: JobContext) -> list[int]:
            return [1]

        def process(self, item: ItemContext) -> int:
            return int(item.input)

    planned, given = small.submit("mixed").job, small.submit("mixed", items=[1, 2]).job
    with small.working():
        assert ended(small, planned).last_error == "RuntimeError: not today"
        assert ended(small, given).progress.done == 2


# Plan and finalize ----------------------------------------------------------------------------------------------------


def breaks_half_way() -> Iterator[int]:
    yield 1
    raise OwnBase


def will_not_close() -> Iterator[int]:
    try:
        while True:
            yield object()  # type: ignore[misc]
    finally:
        yield 2


def raises_when_closed() -> Iterator[int]:
    try:
        while True:
            yield object()  # type: ignore[misc]
    finally:
        raise SystemExit(3)


def ends_by_generator_exit() -> Iterator[int]:
    yield 1
    raise GeneratorExit


PLANS = {
    "breaks half way": (breaks_half_way, "PROCESSING_ERROR"),
    "will not close": (will_not_close, "PAYLOAD_NOT_STORABLE"),
    "raises when closed": (raises_when_closed, "PAYLOAD_NOT_STORABLE"),
    "GeneratorExit": (ends_by_generator_exit, "PROCESSING_ERROR"),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("place", ["thread", "loop"])
@pytest.mark.parametrize("name", PLANS)
def test_what_a_plan_does_is_its_own_outcome(small: Penstock, place: str, name: str) -> None:
    produce, code = PLANS[name]

    class Plan:
        def plan(self, job: JobContext) -> Any:
            return produce()

        def process(self, item: ItemContext) -> int:
            return 1

    class AsyncPlan(Plan):
        async def plan(self, job: JobContext) -> Any:
            for one in produce():
                yield one

    small.kind("planned", retries=0)(Plan if place == "thread" else AsyncPlan)
    bad = small.submit("planned").job
    good = small.submit("planned", items=[1]).job
    with small.working():
        done = ended(small, bad)
        assert (done.state, done.error_code) == (JobState.FAILED, code)
        assert ended(small, good).state is JobState.SUCCEEDED
    assert violations(small.store) == []


@pytest.mark.parametrize("place", ["thread", "loop"])
@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, StrRaises, asyncio.CancelledError, OwnBase])
def test_what_finalize_raises_is_its_own_outcome(small: Penstock, place: str, error: type[BaseException]) -> None:
    class Finalize:
        def process(self, item: ItemContext) -> int:
            return 1

        def finalize(self, job: JobContext) -> Any:
            if job.params == "bad":
                raise error
            return "fine"

    class AsyncFinalize(Finalize):
        async def finalize(self, job: JobContext) -> Any:
            return super().finalize(job)

    small.kind("finalized", retries=0)(Finalize if place == "thread" else AsyncFinalize)
    bad, good = (small.submit("finalized", params, items=[1]).job for params in ("bad", "good"))
    with small.working():
        assert (ended(small, bad).error_code, ended(small, good).result) == ("PROCESSING_ERROR", "fine")


@pytest.mark.parametrize("place", ["thread", "loop"])
def test_the_timeout_holds_for_finalize_and_for_a_plan_that_stands_still(
    app: Penstock, place: str, release: threading.Event
) -> None:
    @app.kind("thread", timeout="50ms", retries=1, backoff="1ms fixed")
    class InThread:
        def plan(self, job: JobContext) -> Any:
            yield 1
            if job.params == "plan":
                release.wait(PATIENCE)

        def process(self, item: ItemContext) -> int:
            return 1

        def finalize(self, job: JobContext) -> None:
            release.wait(PATIENCE)

    @app.kind("loop", timeout="50ms", retries=1, backoff="1ms fixed")
    class OnLoop:
        async def plan(self, job: JobContext) -> Any:
            yield 1
            if job.params == "plan":
                await asyncio.Event().wait()

        async def process(self, item: ItemContext) -> int:
            return 1

        async def finalize(self, job: JobContext) -> None:
            await asyncio.Event().wait()

    jobs = {step: app.submit(place, step).job for step in ("plan", "finalize")}
    with app.working():
        for step, job in jobs.items():
            done = ended(app, job)
            assert (done.state, done.error_code, done.killed_by) == (
                JobState.FAILED,
                "WORKER_TIMEOUT",
                KilledBy.TIMEOUT,
            ), step
            assert done.failed_phase is not None
            assert done.failed_phase.value == {"plan": "init", "finalize": "finalizing"}[step]
    assert violations(app.store) == []


@pytest.mark.parametrize("place", ["thread", "loop"])
def test_a_plan_that_goes_on_may_take_longer_than_the_timeout(small: Penstock, place: str) -> None:
    never = threading.Event()

    class InThread:
        def plan(self, job: JobContext) -> Any:
            for number in range(60):
                never.wait(0.02)
                yield number

        def process(self, item: ItemContext) -> int:
            return 1

    class OnLoop(InThread):
        async def plan(self, job: JobContext) -> Any:
            for number in range(60):
                await asyncio.sleep(0.02)
                yield number

    small.kind("slow", timeout="700ms", retries=0)(InThread if place == "thread" else OnLoop)
    job = small.submit("slow").job
    with small.working():
        assert ended(small, job).progress.done == 60


# What does not end ----------------------------------------------------------------------------------------------------


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
