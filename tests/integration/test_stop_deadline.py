"""A worker stops at its deadline whatever hangs, and what it held goes on elsewhere at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import ItemContext, ItemStatus, JobContext, JobState, Penstock
from penstock.runners.contract import Runner
from penstock.testing.invariants import violations
from penstock.worker import lane as lanes
from penstock.worker.lane import Lane
from tests.integration import handlers

PATIENCE = 30.0


class Gate:
    """What a handler hangs at, until the test is over."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.release = threading.Event()

    def hang(self) -> None:
        self.begun.set()
        self.release.wait(PATIENCE)


@pytest.fixture
def gate() -> Iterator[Gate]:
    one = Gate()
    yield one
    one.release.set()


def in_a_thread(app: Penstock, gate: Gate) -> None:
    @app.kind("hangs", retries=0)
    def hangs(item: ItemContext) -> str:
        gate.hang()
        return "late"


def on_the_loop(app: Penstock, gate: Gate) -> None:
    @app.kind("hangs", retries=0)
    async def hangs(item: ItemContext) -> str:
        gate.hang()
        return "late"


def not_to_be_cancelled(app: Penstock, gate: Gate) -> None:
    @app.kind("hangs", retries=0)
    async def hangs(item: ItemContext) -> str:
        gate.begun.set()
        while not gate.release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "late"


def in_classify(app: Penstock, gate: Gate) -> None:
    def classify(error: BaseException) -> BaseException:
        gate.hang()
        return error

    app.kind("hangs", retries=0, classify=classify)(handlers.fail)


def in_a_process(app: Penstock, gate: Gate) -> None:
    app.kind("hangs", retries=0, runs_in="processes", concurrency=1)(handlers.spin_deaf)


def in_a_plan(app: Penstock, gate: Gate) -> None:
    @app.kind("hangs", retries=0)
    class Hangs:
        def plan(self, job: JobContext) -> Any:
            for number in range(10_000):
                yield number
                if job.planned and not gate.begun.is_set():
                    gate.hang()
            gate.hang()

        def process(self, item: ItemContext) -> int:
            return int(item.input)


def in_finalize(app: Penstock, gate: Gate) -> None:
    @app.kind("hangs", retries=0)
    class Hangs:
        def process(self, item: ItemContext) -> int:
            return 1

        def finalize(self, job: JobContext) -> str:
            gate.hang()
            return "late"


WAYS: dict[str, Callable[[Penstock, Gate], None]] = {
    one.__name__: one
    for one in (
        in_a_thread,
        on_the_loop,
        not_to_be_cancelled,
        in_classify,
        in_a_process,
        in_a_plan,
        in_finalize,
    )
}


@pytest.mark.parametrize("way", WAYS)
def test_what_hangs_is_handed_back_without_a_try(app: Penstock, tmp_path: Path, gate: Gate, way: str) -> None:
    WAYS[way](app, gate)
    begun = tmp_path / "begun"
    given = {"items": [1]} if way == "in_finalize" else {}
    job = app.submit("hangs", str(begun), **given).job  # type: ignore[arg-type]
    worker = app.worker()
    worker.start()
    if way == "in_a_process":
        handlers.wait_for_file(begun, PATIENCE)
    else:
        assert gate.begun.wait(PATIENCE)
    assert stopped_in_time(worker.stop)
    deciding = [item for item in app.items.list(job.id, limit=1000) if item.status is not ItemStatus.DONE]
    assert {(item.status, item.attempts, item.locked_by) for item in deciding} <= {(ItemStatus.PENDING, 0, None)}
    assert app.jobs.get(job.id).state is JobState.RUNNING
    assert violations(app.store) == []
    # What comes late, after the item was handed back, changes nothing.
    gate.release.set()
    assert app.jobs.get(job.id).state is JobState.RUNNING


def stopped_in_time(stop: Callable[[float], bool]) -> bool:
    """Did it come back within the few seconds it has, and hand everything back?"""
    answers: list[bool] = []
    stopping = threading.Thread(target=lambda: answers.append(stop(0.0)), daemon=True)
    stopping.start()
    stopping.join(PATIENCE)
    assert not stopping.is_alive(), "the worker does not stop"
    return answers == [True]


def test_another_worker_goes_on_at_once(app: Penstock, open_app: Callable[[], Penstock], gate: Gate) -> None:
    in_a_thread(app, gate)
    other = open_app()
    other.kind("hangs")(handlers.same)
    job = app.submit("hangs", "fine").job
    worker = app.worker()
    worker.start()
    assert gate.begun.wait(PATIENCE)
    with other.working():
        assert stopped_in_time(worker.stop)
        done = other.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
        assert (done.result, done.retries) == ("fine", 0)
        gate.release.set()
    assert other.jobs.get(job.id).result == "fine"


def test_a_gauge_and_a_subscriber_that_hang_do_not_keep_a_worker(app: Penstock, gate: Gate) -> None:
    second = Gate()

    @app.kind("k")
    class Same:
        process = staticmethod(handlers.same)

        def gauges(self) -> None:
            second.hang()

    app.messages.subscribe("topic")(lambda message: gate.hang())
    app.messages.publish("topic", 1)
    app.submit("k", 1)
    worker = app.worker()
    worker.start()
    assert gate.begun.wait(PATIENCE)
    assert second.begun.wait(PATIENCE)
    assert stopped_in_time(worker.stop)
    second.release.set()


def test_a_lane_that_hangs_is_handed_back_without_it(
    app: Penstock, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the lane's own thread calls may hang, too: here, whoever is told of outcomes."""
    monkeypatch.setattr(lanes, "log_slice", lambda *_: gate.hang())
    going = threading.Event()

    @app.kind("told", concurrency=2)
    def told(item: ItemContext) -> str:
        if item.position == 2:
            going.wait(PATIENCE)
        return "fine"

    job = app.submit("told", items=[1, 2]).job
    worker = app.worker()
    worker.start()
    assert gate.begun.wait(PATIENCE)
    assert stopped_in_time(worker.stop)
    going.set()
    assert [(item.status, item.locked_by) for item in app.items.list(job.id)] == [
        (ItemStatus.DONE, None),
        (ItemStatus.PENDING, None),
    ]
    assert violations(app.store) == []
    gate.release.set()
    for thread in worker._threads:
        thread.join(PATIENCE)


def test_a_lane_may_add_a_runner_while_it_is_told_to_stop(app: Penstock) -> None:
    app.kind("k")(handlers.same)
    worker = app.worker()
    worker.start()
    [lane] = worker._lanes
    dropped: list[str] = []

    class Added:
        abandoned = 0
        is_exhausted = False

        def __init__(self, name: str) -> None:
            self.name = name

        def stop_waiting(self) -> None:
            dropped.append(self.name)
            add(lane, f"after {self.name}")

        def start_waiting(self) -> None:
            pass

        def calls(self) -> list[object]:
            return []

        def close(self) -> None:
            pass

    def add(lane: Lane, name: str) -> None:
        if len(lane.executor._runners) < 4:
            runner: Runner = Added(name)  # type: ignore[assignment]
            lane.executor._runners[name] = runner  # type: ignore[index]

    add(lane, "one")
    assert stopped_in_time(worker.stop)
    assert "one" in dropped


def test_a_plan_that_was_given_up_while_it_writes_adds_nothing(app: Penstock, gate: Gate) -> None:
    """The stop finds the plan between two batches; its thread goes on, and what it writes is fenced off."""
    written = threading.Event()

    @app.kind("plans", retries=0)
    class Plans:
        def plan(self, job: JobContext) -> Any:
            if gate.begun.is_set():
                yield "again"
                return
            yield 1
            gate.hang()
            try:
                yield from range(50_000)
            finally:
                written.set()

        def process(self, item: ItemContext) -> int:
            return 1

    job = app.submit("plans").job
    worker = app.worker()
    worker.start()
    assert gate.begun.wait(PATIENCE)
    assert stopped_in_time(worker.stop)
    gate.release.set()
    assert written.wait(PATIENCE)
    assert app.jobs.get(job.id).progress.total == 0
    assert app.drain(timeout=PATIENCE)
    assert [item.input for item in app.items.list(job.id)] == ["again"]
    assert violations(app.store) == []


def test_a_second_stop_shortens_the_first(app: Penstock, gate: Gate) -> None:
    in_a_thread(app, gate)
    app.submit("hangs")
    worker = app.worker()
    worker.start()
    assert gate.begun.wait(PATIENCE)
    first = threading.Thread(target=worker.stop, args=(3600.0,), daemon=True)
    first.start()
    assert worker._stop_event.wait(PATIENCE)
    worker.stop(0.0)
    first.join(PATIENCE)
    assert not first.is_alive()
