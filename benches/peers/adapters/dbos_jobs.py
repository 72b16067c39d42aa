"""DBOS on PostgreSQL: every job is a workflow on a queue; its input, its state and its result stay in the tables."""

from __future__ import annotations

import signal
import threading

from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions

from benches.peers.adapters.speaking import RESULT, NotOffered, report, speak

POLLING_SECONDS = 0.01
WORKER_CONCURRENCY = 500
THREADS = 8
VERSION = "bench"
OPEN = ["ENQUEUED", "PENDING"]
OPTIONS: EnqueueOptions = {"workflow_name": "noop", "queue_name": "noops", "app_version": VERSION}


def _launch(url: str) -> None:
    """Make the tables where there are none, and start what DBOS runs in the background."""
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": url,
        "application_version": VERSION,
        "log_level": "WARNING",
        "max_executor_threads": THREADS,
    }
    DBOS(config=config)
    DBOS.launch()


class Client:
    """Who enqueues and asks, from outside the application."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = DBOSClient(system_database_url=url, lazy=True)

    def prepare(self, _: range) -> None:
        _launch(self._url)
        DBOS.register_queue(
            OPTIONS["queue_name"], worker_concurrency=WORKER_CONCURRENCY, polling_interval_sec=POLLING_SECONDS
        )
        DBOS.destroy()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._client.enqueue(OPTIONS, number)

    def enqueue_in_bulk(self, _: range) -> None:
        raise NotOffered("enqueue for each job, or enqueue_in_transaction for each within a transaction of one's own")

    def left(self, _: range) -> int:
        return len(self._client.list_workflows(status=OPEN, limit=1, load_input=False, load_output=False))


def work(url: str) -> None:
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())

    @DBOS.workflow(name=OPTIONS["workflow_name"])
    def noop(number: int) -> dict[str, str]:
        report(number)
        return RESULT

    _launch(url)
    told.wait()
    DBOS.destroy()


if __name__ == "__main__":
    speak(Client, work)
