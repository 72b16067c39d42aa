"""Handlers on a Celery cluster of four processes: how much of what four processes can do comes through, and the cost.

Items of 20 ms that only wait, against four processes that do nothing else than wait; and items that do nothing, to see
what an item costs. From before the submission to the job's end, on a private RabbitMQ and a private Valkey.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benches.celery_app import QUEUE, SECONDS, make_app
from benches.databases import Databases
from benches.plan import LeftOut, Plan
from benches.report import Answer, Bar, by_pairs
from penstock import JobState, Penstock
from tests.celery.brokers import BROKERS
from tests.private_brokers import BrokerUnavailable, private_broker

NAME = "celery"
BAR = Bar(0.9)
PROCESSES = 4
PATIENCE = 600.0
_WARM_UP = 200


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database with each broker."""
    answers: list[Answer] = []
    for name, broker_type in BROKERS.items():
        try:
            with private_broker(broker_type) as broker, databases.fresh() as url, _cluster(broker.url, url) as app:
                for kind in ("noop", "short"):
                    _rate(app, kind, _WARM_UP)
                repetitions = range(plan.repetitions_of_celery)
                short = [_rate(app, "short", plan.celery_items) for _ in repetitions]
                noop = [_rate(app, "noop", plan.celery_noops) for _ in repetitions]
        except BrokerUnavailable as error:
            raise LeftOut(str(error)) from None
        ceiling = [_waiting_rate() for _ in repetitions]
        notes = [f"{PROCESSES} processes; {max(noop):,.0f} items a second that do nothing"]
        what = f"items of 20 ms on Celery, {name}"
        answers.append(by_pairs(NAME, what, databases.name, "items/s", short, ceiling, bar=BAR, notes=notes))
    return answers


@contextmanager
def _cluster(broker: str, url: str) -> Iterator[Penstock]:
    environment = {**os.environ, "BENCH_BROKER": broker, "PENSTOCK_DATABASE_URL": url}
    arguments = ["-A", "benches.celery_app:celery", "worker", "-Q", QUEUE, "-c", str(PROCESSES), "-l", "ERROR"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", *arguments],
        env=environment, cwd=Path(__file__).parents[1], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    app, _ = make_app(broker, url)
    dispatcher = app.dispatcher("celery")
    dispatcher.start()
    try:
        yield app
    finally:
        dispatcher.stop()
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        app.close()


def _rate(app: Penstock, kind: str, items: int) -> float:
    begun = time.perf_counter()
    job = app.submit(kind, items=range(items)).job
    job = app.jobs.wait(job.id, timeout=PATIENCE)
    assert (job.state, job.progress.processed) == (JobState.SUCCEEDED, items), job
    return items / (time.perf_counter() - begun)


def _waiting_rate(calls: int = 100) -> float:
    """What as many processes can do that only wait."""
    begun = time.perf_counter()
    for _ in range(calls):
        time.sleep(SECONDS)
    return PROCESSES * calls / (time.perf_counter() - begun)
