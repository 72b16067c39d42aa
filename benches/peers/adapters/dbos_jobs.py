"""DBOS on PostgreSQL: every job is a workflow on a queue; its input, its state and its result stay in the tables.

A process that starts takes up the workflows that an earlier one with the same executor id and application version left
pending. The id is ``local`` unless told otherwise and the version is named here, so a worker that follows a killed one
recovers its work at once. Nobody else would: that another process died is for the Conductor, a service, to find out.
"""

from __future__ import annotations

import signal
import threading
import uuid

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions

from benches.peers.adapters.speaking import RESULT, NotOffered, report, speak

POLLING_SECONDS = 0.01
WORKER_CONCURRENCY = 500
THREADS = 8
VERSION = "bench"
OPEN = ["ENQUEUED", "PENDING"]
ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
CANCELED_AT_ONCE = 10_000
"""Each id is a parameter of a statement, and PostgreSQL allows 65,535."""
APPLICATION = "bench"
OPTIONS: EnqueueOptions = {"workflow_name": "noop", "queue_name": "noops", "app_version": VERSION}


def _launch(url: str) -> None:
    """Make the tables where there are none, and start what DBOS runs in the background."""
    config: DBOSConfig = {
        "name": APPLICATION,
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
        self._client = DBOSClient(system_database_url=url, application_name=APPLICATION, lazy=True)
        self._engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        self._work = ""
        self._units: list[str] = []

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

    def begin(self, numbers: range) -> None:
        """There is no call for many; one transaction for all saves a commit for each."""
        self._work = str(uuid.uuid4())
        self._units = [f"{self._work}-{number}" for number in numbers]
        with self._engine.begin() as connection:
            for unit, number in zip(self._units, numbers, strict=True):
                self._client.enqueue_in_transaction(connection, {**OPTIONS, "workflow_id": unit}, number)

    def progress(self, _: range) -> int:
        """There is no call that counts."""
        ended = self._client.list_workflows(
            workflow_id_prefix=self._work, status=ENDED, load_input=False, load_output=False
        )
        return len(ended)

    def cancel(self, _: range) -> None:
        for first in range(0, len(self._units), CANCELED_AT_ONCE):
            self._client.cancel_workflows(self._units[first : first + CANCELED_AT_ONCE])

    def grow(self, numbers: range) -> None:
        """Copies of one workflow and of its input, each with an id of its own."""
        first = self._client.enqueue(OPTIONS, numbers.start).workflow_id
        values = {"first": first, "count": len(numbers) - 1}
        with self._engine.begin() as connection:
            for table in ("workflow_status", "workflow_input"):
                columns = sqlalchemy.inspect(connection).get_columns(table, schema="dbos")
                others = ", ".join(one["name"] for one in columns if one["name"] != "workflow_uuid")
                copy = (
                    f"INSERT INTO dbos.{table} (workflow_uuid, {others}) "
                    f"SELECT workflow_uuid || '-' || number, {others} "
                    f"FROM dbos.{table}, generate_series(1, :count) AS number WHERE workflow_uuid = :first"
                )
                connection.execute(sqlalchemy.text(copy), values)

    def claim(self, numbers: range) -> int:
        """As a worker does that has room for so many more."""
        queue = self._client.retrieve_queue(OPTIONS["queue_name"])
        assert queue is not None
        taken, _ = self._client._sys_db.start_queued_workflows(
            queue, "claimer", VERSION, None, WORKER_CONCURRENCY - len(numbers), owner_xid=str(uuid.uuid4())
        )
        return len(taken)

    def page(self, numbers: range) -> int:
        return len(self._client.list_workflows(limit=len(numbers), offset=numbers.start))


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
