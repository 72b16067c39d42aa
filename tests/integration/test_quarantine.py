"""Suspects in a real worker: each role and runner in a process of its own, and alone where that cannot be."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update

from penstock import ItemContext, ItemStatus, JobState, Penstock
from penstock.lifecycle import KilledBy, Phase
from penstock.operations.claim import claim
from penstock.operations.maintenance import rescue_from
from penstock.store.tables import job_items
from penstock.testing.invariants import violations

PATIENCE = 60.0
POLL = 0.02
MODULE = """
import asyncio, os, pathlib, time
from penstock import Penstock

app = Penstock("sqlite:///{folder}/penstock.db")

@app.kind("in-thread")
def in_thread(item):
    return os.getpid()

@app.kind("on-loop")
async def on_loop(item):
    await asyncio.sleep(0)
    return os.getpid()

@app.kind("steps")
class Steps:
    def plan(self, job):
        yield os.getpid()
    def process(self, item):
        return item.input
    def finalize(self, job):
        return [os.getpid(), *job.results()]

@app.kind("exits")
def exits(item):
    os._exit(3)

@app.kind("exits-on-loop")
async def exits_on_loop(item):
    os._exit(3)

@app.kind("exits-in-plan")
class ExitsInPlan:
    def plan(self, job):
        os._exit(3)
        yield
    def process(self, item):
        return None

@app.kind("raises", retries=0)
def raises(item):
    raise ValueError("as ever")

@app.kind("too-long", retries=0, timeout="0.3s")
def too_long(item):
    time.sleep(60)

@app.kind("waits")
def waits(item):
    pathlib.Path({folder!r}, "begun").touch()
    time.sleep(60)
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Penstock]:
    """An app that other processes find: a variable of a module."""
    name = f"suspicious_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(folder=str(tmp_path)))
    monkeypatch.syspath_prepend(tmp_path)
    made: Penstock = importlib.import_module(name).app
    yield made
    assert violations(made.store) == []
    made.close()
    del sys.modules[name]


def make_suspect(app: Penstock, kind: str) -> None:
    """A worker dies with the kind's next item in hand, and not for the first time."""
    [held] = claim(app.store, kind, "dead", size=1, lease_seconds=60.0).items
    rescue_from(app.store, app.kinds, "dead", 5)
    often = update(job_items).where(job_items.c.id == held.item_id).values(deaths=5)
    app.in_transaction(lambda one: one.execute(often))


def item_of(app: Penstock, job_id: UUID) -> Any:
    """The row of the job's first item."""
    asked = select(*job_items.c).where(job_items.c.job_id == job_id).order_by(job_items.c.position)
    return app.in_transaction(lambda one: one.execute(asked).first(), reads=True)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"it never happened that {what}"
        time.sleep(POLL)


@pytest.mark.parametrize("kind", ["in-thread", "on-loop"])
def test_a_suspect_that_does_no_harm_is_done_in_a_process_of_its_own(app: Penstock, kind: str) -> None:
    job = app.submit(kind).job
    make_suspect(app, kind)
    assert app.drain(timeout=PATIENCE)
    done = app.jobs.get(job.id)
    assert done.state is JobState.SUCCEEDED, done.last_error
    assert done.result != os.getpid()
    assert (item_of(app, job.id).attempts, item_of(app, job.id).alone) == (1, None)


def test_a_plan_and_a_finalize_run_there_too(app: Penstock) -> None:
    job = app.submit("steps").job
    make_suspect(app, "steps")
    with app.working():
        wait_for(lambda: app.jobs.get(job.id).progress.total == 1, "the plan was made")
        done = app.jobs.wait(job.id, timeout=PATIENCE)
    assert isinstance(done.result, list)
    finalized, planned = done.result
    assert (finalized, planned != os.getpid()) == (os.getpid(), True)
    again = app.submit("steps", items=[]).job
    make_suspect(app, "steps")
    assert app.drain(timeout=PATIENCE)
    assert app.jobs.get(again.id).result not in ([os.getpid()], None)


@pytest.mark.parametrize(
    ("kind", "phase"),
    [("exits", Phase.PROCESSING), ("exits-on-loop", Phase.PROCESSING), ("exits-in-plan", Phase.INIT)],
)
def test_one_that_kills_its_process_is_blamed(app: Penstock, kind: str, phase: Phase) -> None:
    job = app.submit(kind).job
    make_suspect(app, kind)
    assert app.drain(timeout=PATIENCE)
    failed = app.jobs.get(job.id)
    assert (failed.state, failed.error_code, failed.failed_phase) == (JobState.FAILED, "WORKER_CRASH", phase)
    assert failed.killed_by is KilledBy.WORKER_CRASH
    assert failed.last_error == (
        "the item was in hand in 5 deaths of workers; run alone, the process that ran the handler exited with code 3"
    )


@pytest.mark.parametrize(("kind", "said"), [("raises", "as ever"), ("too-long", "past its limit of 0.3 s")])
def test_what_it_raises_there_is_judged_as_ever(app: Penstock, kind: str, said: str) -> None:
    job = app.submit(kind).job
    make_suspect(app, kind)
    assert app.drain(timeout=PATIENCE)
    failed = app.jobs.get(job.id)
    assert (failed.state, failed.error_code == "WORKER_CRASH") == (JobState.FAILED, False)
    assert said in str(failed.last_error)


def test_a_worker_that_stops_hands_a_suspect_back(app: Penstock, tmp_path: Path) -> None:
    job = app.submit("waits").job
    make_suspect(app, "waits")
    worker = app.worker()
    worker.start()
    wait_for((tmp_path / "begun").exists, "the handler began")
    worker.stop(grace=0.0)
    item = item_of(app, job.id)
    assert (item.status, item.attempts, item.deaths) == (ItemStatus.PENDING.value, 0, 5)


def test_where_the_app_cannot_be_had_it_is_alone_in_its_worker(app: Penstock) -> None:
    seen: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    @app.kind("suspicious")
    def suspicious(item: ItemContext) -> int:
        seen.append("suspect")
        return os.getpid()

    @app.kind("neighbour")
    def neighbour(item: ItemContext) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)
        seen.append(f"neighbour {item.input}")

    job = app.submit("suspicious").job
    make_suspect(app, "suspicious")
    app.submit("neighbour", 1)
    app.jobs.pause(job.id)
    with app.working(kinds=["suspicious", "neighbour"]) as worker:
        assert begun.wait(PATIENCE)
        app.jobs.resume(job.id)
        # Its process cannot find the kind; the next claim of it waits for the neighbour.
        wait_for(lambda: worker.solitude.is_wanted, "it wants to be alone")
        app.submit("neighbour", 2)
        go_on.set()
        done = app.jobs.wait(job.id, timeout=PATIENCE)
        wait_for(lambda: len(seen) == 3, "all three were run")
    assert done.result == os.getpid()
    assert seen == ["neighbour 1", "suspect", "neighbour 2"]
    assert item_of(app, job.id).alone is not None
