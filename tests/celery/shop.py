"""The app of these tests: every process makes it again, from the environment that :mod:`tests.celery.cluster` sets.

Its handlers write what they do into a ledger, a file outside of the database: a line for each time one ran.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

from celery import Celery

from penstock import ItemContext, Penstock
from penstock.celery import run_on_celery

LEDGER = Path(os.environ.get("SHOP_LEDGER", os.devnull))
_POLL = 0.01


def write_line(word: str, item: ItemContext) -> None:
    """One line of the ledger: what happened, to which item of which job, in which process."""
    line = f"{word} {item.job_id} {item.position} {os.getpid()}\n"
    descriptor = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def handle(item: ItemContext) -> Any:
    """Do what the input says: wait for a file, die where a file does not exist yet, or nothing."""
    write_line("begun", item)
    what = item.input if isinstance(item.input, dict) else {}
    if "die_unless" in what and not Path(what["die_unless"]).exists():
        Path(what["die_unless"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    pause = threading.Event()
    while "wait_for" in what and not Path(what["wait_for"]).exists():
        pause.wait(_POLL)
    write_line("done", item)
    return item.position


def make_app(url: str | None = None) -> Penstock:
    """The app, with its kinds."""
    app = Penstock(url)
    app.kind("count")(handle)
    app.kind("pair", concurrency=2)(handle)

    @app.kind("table")
    class Table:
        def plan(self, job: Any) -> Any:
            yield from range(job.params["rows"])

        async def process(self, item: ItemContext) -> Any:
            write_line("done", item)
            return item.input

        def finalize(self, job: Any) -> Any:
            return sum(job.results())

    return app


def make_celery(broker: str) -> Celery:
    """The Celery app, without a result backend."""
    celery = Celery("shop", broker=broker)
    celery.conf.update(
        broker_connection_retry_on_startup=True, broker_connection_timeout=5, worker_hijack_root_logger=False
    )
    return celery


app = make_app()
celery = make_celery(os.environ.get("SHOP_BROKER", "memory://"))
run_on_celery(celery, app, queue=os.environ.get("SHOP_QUEUE", "shop"))
