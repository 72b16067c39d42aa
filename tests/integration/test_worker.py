"""A real worker on real databases: every kind of handler, and how an idle worker hears of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock import (
    ItemContext,
    ItemStatus,
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
from penstock.errors import Postponed
from penstock.lifecycle.kind import Kind
from penstock.worker import lane
from penstock.worker.controllers import Controllers
from tests.integration import handlers
from tests.integration.finished_jobs import PATIENCE, finished


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
