"""A chord of a thousand tasks, tracked and not: what an honest job costs those who keep their Celery tasks.

A coordinator hands out a chord of tasks that do nothing, as fast as four processes take them; from its call until the
callback's result is there, or until the job has succeeded. Each way has a worker and a queue of its own, they take
turns, and nobody else works meanwhile. Results are kept in Valkey whichever broker carries the messages.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benches.databases import Databases
from benches.plan import LeftOut, Plan, in_turns
from benches.report import Answer, Bar, by_pairs
from benches.tracked_app import MODES, make_apps
from penstock import JobState, Penstock
from tests.celery.brokers import BROKERS, Valkey
from tests.private_brokers import BrokerUnavailable, private_broker

NAME = "tracking"
BAR = Bar(0.8)
PROCESSES = 4
PATIENCE = 300.0


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database with each broker."""
    answers: list[Answer] = []
    for name, broker_type in BROKERS.items():
        try:
            with (
                private_broker(broker_type) as broker,
                private_broker(Valkey) as backend,
                databases.fresh() as url,
                _clusters(broker.url, backend.url, url) as (app, celery),
            ):
                for mode in MODES:
                    _rate(app, celery, mode, plan.chord_tasks // 10)
                at_once = _rate(app, celery, "at-once", plan.chord_tasks)
                batched, untracked = in_turns(
                    partial(_rate, app, celery, "batched", plan.chord_tasks),
                    partial(_rate, app, celery, "untracked", plan.chord_tasks),
                    plan.repetitions_of_chords,
                )
        except BrokerUnavailable as error:
            raise LeftOut(str(error)) from None
        notes = [f"{PROCESSES} processes; written at once: {at_once:,.0f} tasks a second"]
        what = f"chord of {plan.chord_tasks:,} tasks, tracked, {name}"
        answers.append(by_pairs(NAME, what, databases.name, "tasks/s", batched, untracked, bar=BAR, notes=notes))
    return answers


@contextmanager
def _clusters(broker: str, backend: str, url: str) -> Iterator[tuple[Penstock, Any]]:
    """A worker for each way, and the client of all of them."""
    with ExitStack() as stack:
        for mode in MODES:
            stack.enter_context(_worker(mode, broker, backend, url))
        app, celery, tracker = make_apps(broker, backend, url, mode="batched")
        assert tracker is not None
        stack.callback(app.close)
        stack.callback(tracker.close)
        yield app, celery


@contextmanager
def _worker(mode: str, broker: str, backend: str, url: str) -> Iterator[None]:
    environment = {
        **os.environ,
        "BENCH_BROKER": broker, "BENCH_BACKEND": backend, "BENCH_MODE": mode, "PENSTOCK_DATABASE_URL": url,
    }  # fmt: skip
    arguments = ["worker", "-Q", mode, "-c", str(PROCESSES), "-l", "ERROR", "-n", f"{mode}@bench"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "benches.tracked_app:celery", *arguments],
        env=environment, cwd=Path(__file__).parents[1], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def _rate(app: Penstock, celery: Any, mode: str, tasks: int) -> float:
    """Tasks a second of one chord, its coordinator and its callback included."""
    begun = time.perf_counter()
    root = celery.send_task(f"bench.{mode}", (tasks,), queue=mode)
    if mode == "untracked":
        callback = celery.AsyncResult(root.get(timeout=PATIENCE))
        assert callback.get(timeout=PATIENCE) == tasks
    else:
        job = app.jobs.wait(root.id, timeout=PATIENCE)
        assert job.state is JobState.SUCCEEDED, job
    return (tasks + 2) / (time.perf_counter() - begun)
