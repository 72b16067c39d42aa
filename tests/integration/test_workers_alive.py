"""A real worker says that it is there, again and again, what it has in hand, and when it goes."""

from __future__ import annotations

import threading

import pytest

from penstock import ItemContext, Penstock
from penstock.worker import worker as module

PATIENCE = 30.0


def test_it_appears_is_seen_again_and_leaves(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIGNING_SECONDS", 0.02)
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
        assert first.data == {"kinds": ["gated", "idle"], "topics": [], "held": nothing, "abandoned": nothing}
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


def test_one_for_a_single_job_does_not_appear(app: Penstock) -> None:
    seen: list[object] = []
    app.kind("looks")(lambda item: seen.append(app.system.workers()))
    job = app.submit("looks", {}).job
    assert app.jobs.kickoff(job.id, duration=PATIENCE).finished
    assert seen == [[]]
