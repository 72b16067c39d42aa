"""A classify, a start, a plan or a finalize that misbehaves harms its own item alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

from penstock import ItemContext, JobContext, JobState, Penstock, Permanent
from penstock.lifecycle import KilledBy
from penstock.runners.threads import ThreadRunner
from penstock.testing.invariants import violations
from tests.integration import handlers
from tests.integration.hostile import OwnBase, StrRaises
from tests.integration.small_workers import PATIENCE, PLACES, ended


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
