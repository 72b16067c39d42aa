"""Workers that are alive: they appear, are seen again, leave, or are forgotten after an hour."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from penstock import ItemContext, Penstock
from penstock.clock import ManualClock
from penstock.errors import StoreUnavailable
from penstock.operations.workers import SIGNING_SECONDS, WorkerSeen, appear, forget_workers, leave, workers
from penstock.store.engine import Store
from penstock.worker import worker as module
from tests.on_store import OnStore

PATIENCE = 30.0
HOUR = 3600.0


def sign(store: Store, name: str, held: int = 0) -> None:
    store.write(lambda one: appear(one, name, {"kinds": ["left"], "held": {"left": held}}))


def seen(store: Store) -> list[WorkerSeen]:
    return store.read(workers)


def test_the_first_time_stays_and_the_last_one_moves(store: Store, clock: ManualClock) -> None:
    began = clock.held()
    sign(store, "b")
    clock.advance(7)
    sign(store, "a")
    sign(store, "b", held=3)
    later = began + timedelta(seconds=7)
    assert seen(store) == [
        WorkerSeen("a", later, later, {"kinds": ["left"], "held": {"left": 0}}, alive=True),
        WorkerSeen("b", began, later, {"kinds": ["left"], "held": {"left": 3}}, alive=True),
    ]


def test_one_that_leaves_is_gone_and_no_other(store: Store) -> None:
    sign(store, "a")
    sign(store, "b")
    store.write(lambda one: leave(one, "a"))
    store.write(lambda one: leave(one, "nobody"))
    assert [one.name for one in seen(store)] == ["b"]


def test_alive_is_who_was_seen_within_three_times(store: Store, clock: ManualClock) -> None:
    sign(store, "w")
    clock.advance(3 * SIGNING_SECONDS)
    assert [one.alive for one in seen(store)] == [True]
    clock.advance(0.5)
    assert [one.alive for one in seen(store)] == [False]
    sign(store, "w")
    assert [one.alive for one in seen(store)] == [True]


def test_after_an_hour_it_is_forgotten(store: Store, clock: ManualClock) -> None:
    sign(store, "dead")
    clock.advance(1)
    sign(store, "later")
    clock.advance(HOUR - 1)
    assert store.write(forget_workers) == 0, "an hour is not longer than an hour"
    clock.advance(0.5)
    assert store.write(forget_workers) == 1
    assert [one.name for one in seen(store)] == ["later"]


def test_a_workers_sweep_forgets_them(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    app = OnStore(store, tmp_path, sweep_seconds=0.05)
    app.kind("idle")(lambda item: item.input)
    sign(store, "dead")
    clock.advance(HOUR + 1)
    worker = app.worker()
    worker.signals.listen()
    worker.start()
    try:
        assert worker.signals.wait("swept"), "no sweep was made"
        assert [one.name for one in app.system.workers()] == [worker.name]
    finally:
        worker.stop()
    assert app.system.workers() == []


def test_a_worker_that_cannot_sign_works_all_the_same(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = OnStore(store, tmp_path)
    app.kind("double")(lambda item: item.input * 2)
    job = app.submit("double", 21).job

    def away(*_: object) -> None:
        raise StoreUnavailable("the database is not available: connection refused")

    monkeypatch.setattr(module, "appear", away)
    monkeypatch.setattr(module, "leave", away)
    assert app.drain(timeout=30.0)
    assert app.jobs.get(job.id).result == 42
    assert app.system.workers() == []


def test_it_appears_is_seen_again_and_leaves(
    open_app: Callable[..., Penstock], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SIGNING_SECONDS", 0.02)
    app = open_app(heartbeat_seconds=0.05, poll_seconds=300.0)
    gate, begun = threading.Event(), threading.Event()

    @app.kind("gated")
    def gated(item: ItemContext) -> None:
        begun.set()
        gate.wait(PATIENCE)

    app.kind("idle")(lambda item: None)
    worker = app.worker()
    worker.signals.listen()
    worker.start()
    try:
        [first] = app.system.workers()
        assert worker.signals.count("signed") >= 1, "it is there before it works"
        assert (first.name, first.alive) == (worker.name, True)
        nothing = {"gated": 0, "idle": 0}
        lanes = first.data.pop("lanes")
        assert first.data == {"kinds": ["gated", "idle"], "topics": [], "held": nothing, "abandoned": nothing}
        assert {kind: (lane["held"], lane["items_sec"]) for kind, lane in lanes.items()} == dict.fromkeys(
            nothing, (0, 0)
        )
        app.submit("gated", {})
        assert begun.wait(PATIENCE)
        assert worker.signals.wait("signed", worker.signals.count("signed") + 2)
        [later] = app.system.workers()
        assert later.started_at == first.started_at
        assert later.seen_at > first.seen_at
        assert later.data["held"] == {"gated": 1, "idle": 0}
    finally:
        gate.set()
        worker.stop()
    assert app.system.workers() == []


def test_one_for_a_single_job_does_not_appear(open_app: Callable[..., Penstock]) -> None:
    app = open_app()
    found: list[object] = []
    app.kind("looks")(lambda item: found.append(app.system.workers()))
    job = app.submit("looks", {}).job
    assert app.jobs.kickoff(job.id, duration=PATIENCE).finished
    assert found == [[]]
