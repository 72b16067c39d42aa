"""A Celery cluster for the tests: a broker's queue, a database, worker processes, and a dispatcher in this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID
from weakref import WeakSet

from penstock import Item, Job, Penstock
from penstock.celery import run_on_celery
from penstock.celery.ticket import Ticket
from penstock.celery.ticket_queue import TicketQueue
from penstock.celery.ticket_task import TicketTask
from penstock.lifecycle.states import FLOWING
from tests.celery import shop
from tests.celery.brokers import Broker
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PATIENCE = 100.0
# Leases are long: what is known only when one has run out comes too late for a test.
_BRISK = {"PENSTOCK_HEARTBEAT_SECONDS": "0.1", "PENSTOCK_SWEEP_SECONDS": "0.3", "LOCK_FLOOR_MS": "600000"}

_ended: WeakSet[subprocess.Popen[bytes]] = WeakSet()


class Cluster:
    """Everything there is of one cluster."""

    def __init__(self, broker: Broker, url: str, folder: Path, **settings: str) -> None:
        self.broker = broker
        self.queue = f"shop-{uuid.uuid4().hex[:8]}"
        self.ledger = folder / f"{self.queue}.ledger"
        self.log = folder / f"{self.queue}.log"
        self.environment = {
            **os.environ,
            **_BRISK,
            "PENSTOCK_DATABASE_URL": url,
            "PENSTOCK_FILES_DIRECTORY": str(folder),
            "SHOP_BROKER": broker.url,
            "SHOP_QUEUE": self.queue,
            "SHOP_LEDGER": str(self.ledger),
            "PYTHONPATH": str(ROOT),
            **settings,
        }
        with _environment(self.environment):
            self.app: Penstock = shop.make_app()
            assert self.app.settings.database_url == url
        self.celery = shop.make_celery(broker.url)
        run_on_celery(self.celery, self.app, queue=self.queue)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def task(self) -> TicketTask:
        """The task that works off tickets."""
        found: TicketTask = self.celery.tasks[f"penstock.ticket.{self.queue}"]
        return found

    def tickets(self) -> TicketQueue:
        """The queue, to look at and to send more."""
        return TicketQueue(self.task, self.queue, expires=600.0)

    def send(self, *tickets: Ticket) -> None:
        """Send tickets, as a dispatcher does."""
        queue = self.tickets()
        queue.send(tickets)
        queue.close()

    def send_arguments(self, *arguments: object, task_id: Any = None, **keywords: object) -> None:
        """Send a message to the task, whatever its arguments."""
        with self.celery.connection_for_write() as connection:
            self.task.apply_async(
                args=arguments, kwargs=keywords, task_id=task_id, queue=self.queue,
                producer=self.celery.amqp.Producer(connection),
            )  # fmt: skip

    def count_waiting(self) -> int:
        """How many tickets no worker has yet."""
        queue = self.tickets()
        try:
            return queue.count_waiting()
        finally:
            queue.close()

    def item(self, job: Job) -> Item:
        """The only item of a job."""
        [item] = self.app.items.list(job.id)
        return item

    def start_worker(self, *, processes: int = 2, pool: str = "prefork") -> subprocess.Popen[bytes]:
        """A Celery worker with a pool of so many processes (or threads), in a process group of its own."""
        arguments = ["-A", "tests.celery.shop:celery", "worker", "-Q", self.queue, "-c", str(processes), "-P", pool]
        arguments += ["-n", f"{uuid.uuid4().hex[:8]}@test", "-l", "INFO"]
        arguments += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        return self.start([sys.executable, "-m", "celery", *arguments])

    def start_dispatcher(self) -> subprocess.Popen[bytes]:
        """``penstock dispatch --celery``."""
        code = "from penstock.cli import main; main()"
        return self.start([sys.executable, "-c", code, "dispatch", "--celery", "--app", "tests.celery.shop:app"])

    @contextmanager
    def dispatching(self) -> Iterator[None]:
        """A dispatcher in this process."""
        dispatcher = self.app.dispatcher("celery")
        dispatcher.start()
        try:
            yield
        finally:
            dispatcher.stop()

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """A process that ends with the cluster."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, env=self.environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        return process

    def ran(self, word: str = "done", job_id: UUID | None = None) -> Counter[tuple[str, int]]:
        """How often the ledger says so of each item, by job and position."""
        return Counter((job, position) for job, position, _ in self.lines(word, job_id))

    def lines(self, word: str = "done", job_id: UUID | None = None) -> list[tuple[str, int, int]]:
        """The lines of the ledger that say so: job, position and process."""
        if not self.ledger.exists():
            return []
        lines = [line.split() for line in self.ledger.read_text().splitlines()]
        return [
            (job, int(position), int(process))
            for what, job, position, process in lines
            if what == word and job_id in (None, UUID(job))
        ]

    def wait_for_lines(self, count: int, word: str = "begun", job_id: UUID | None = None) -> None:
        """Until the ledger has so many lines."""
        eventually(lambda: len(self.lines(word, job_id)) >= count, PATIENCE)

    def wait(self, job_id: UUID) -> Any:
        """The job as it ended."""
        job = self.app.jobs.wait(job_id, timeout=PATIENCE)
        assert job.state not in FLOWING, (
            f"{job.state} after {PATIENCE:g} s:\n{self.log.read_text(errors='replace')[-6000:]}"
        )
        return job

    def close(self) -> None:
        """End everything."""
        for process in self._processes:
            kill_group(process)
        with suppress(Exception):
            self.app.close()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for a process and those it has started; once, for its number may be another's after that."""
    if process in _ended:
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _ended.add(process)


@contextmanager
def _environment(environment: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
