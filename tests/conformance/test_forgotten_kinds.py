"""Kinds that jobs wait for and nobody knows any more: said once in a worker's log, and never decided about."""

from __future__ import annotations

from collections.abc import Callable

from structlog.testing import capture_logs

from penstock import Penstock
from penstock.operations.forgotten_kinds import ForgottenKinds
from penstock.operations.workers import appear

Open = Callable[..., Penstock]


def app_with(open_app: Open, *kinds: str) -> Penstock:
    app = open_app()
    for name in kinds:
        app.kind(name)(lambda item: 1)
    return app


def test_only_kinds_that_jobs_wait_for_and_no_live_worker_has_are_forgotten(open_app: Open) -> None:
    before = app_with(open_app, "bake", "brew", "greet", "mill")
    before.submit("greet")
    held = before.submit("bake", hold=True).job
    before.submit("brew")
    paused = before.submit("mill").job
    before.jobs.pause(paused.id)
    before.jobs.cancel(before.submit("mill").job.id)
    now = app_with(open_app, "greet")
    assert now.system.forgotten_kinds() == ["brew"], "held and paused jobs wait for somebody's word, not for a worker"
    before.jobs.release(held.id)
    before.jobs.resume(paused.id)
    assert now.system.forgotten_kinds() == ["bake", "brew", "mill"]
    now.store.write(lambda transaction: appear(transaction, "another", {"kinds": ["brew", "mill"]}))
    assert now.system.forgotten_kinds() == ["bake"]
    assert before.system.forgotten_kinds() == []


def test_a_worker_names_each_of_them_once(open_app: Open) -> None:
    before, now = app_with(open_app, "bake", "brew"), app_with(open_app, "greet")
    kinds = ForgottenKinds()

    def named_in_a_pass() -> list[tuple[str, list[str]]]:
        with capture_logs() as lines:
            kinds.look(now.store, ["greet"])
        return [(line["code"], line["kinds"]) for line in lines if line["log_level"] == "warning"]

    assert named_in_a_pass() == []
    before.submit("bake")
    assert named_in_a_pass() == [("KIND_UNKNOWN", ["bake"])]
    assert named_in_a_pass() == [], "once is enough"
    before.submit("brew")
    assert named_in_a_pass() == [("KIND_UNKNOWN", ["brew"])]


def test_it_is_part_of_a_workers_pass(open_app: Open) -> None:
    app_with(open_app, "bake").submit("bake")
    working = app_with(open_app, "greet").worker()
    with capture_logs() as lines:
        working._sweep()
    assert [line["kinds"] for line in lines if line.get("code") == "KIND_UNKNOWN"] == [["bake"]]
