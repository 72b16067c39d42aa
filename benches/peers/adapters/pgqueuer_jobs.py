"""PgQueuer over asyncpg: a job leaves the queue's table for its log when it is done; nothing keeps a result.

A running job beats twice in ``heartbeat_timeout``, 30 s by default. One that has not for so long is taken again by the
statement that takes waiting jobs; a worker with nothing to do runs it after 30 s at the latest.
"""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import EntrypointExecutionParameter, Queries
from pgqueuer.types import JobId

from benches.peers.adapters.speaking import report, speak

BATCH = 500
ENTRYPOINT = "noop"
ENDED = ("successful", "exception", "canceled", "deleted")
CANCELED_AT_ONCE = 500
"""The ids go out in one notification, and PostgreSQL's are of 8000 bytes at most."""
HEARTBEAT_TIMEOUT = timedelta(seconds=30)
GROW = """
    WITH new AS (
        INSERT INTO pgqueuer (priority, entrypoint, payload, headers, status)
        SELECT job.priority, job.entrypoint, convert_to(number::text, 'UTF8'), job.headers, job.status
        FROM pgqueuer AS job, generate_series($2::bigint, $3::bigint) AS number
        WHERE job.id = $1
        RETURNING id, status, entrypoint, priority
    )
    INSERT INTO pgqueuer_log (job_id, status, entrypoint, priority) SELECT id, status, entrypoint, priority FROM new
"""
"""As the enqueue statement does: the job, and an entry in the log."""
Answer = TypeVar("Answer")


class Client:
    """Who enqueues and asks: one connection, on an event loop that rests between two commands."""

    def __init__(self, url: str) -> None:
        self._loop = uvloop.new_event_loop()
        self._connection = self._finish(asyncpg.connect(url))
        self._queries = Queries.from_asyncpg_connection(self._connection)
        self._units: list[JobId] = []

    def prepare(self, _: range) -> None:
        self._finish(self._queries.install())
        self._finish(self._queries.optimize_autovacuum())

    def enqueue(self, numbers: range) -> None:
        self._finish(self._one_at_a_time(numbers))

    def enqueue_in_bulk(self, numbers: range) -> None:
        self._enqueue_all(numbers)

    def left(self, _: range) -> int:
        return sum(one.count for one in self._finish(self._queries.queue_size()))

    def begin(self, numbers: range) -> None:
        self._units = self._enqueue_all(numbers)

    def progress(self, _: range) -> int:
        """What CompletionWatcher, the documented way to follow many jobs, asks."""
        return sum(status in ENDED for _, status in self._finish(self._queries.job_status(self._units)))

    def cancel(self, _: range) -> None:
        for first in range(0, len(self._units), CANCELED_AT_ONCE):
            self._cancel(self._units[first : first + CANCELED_AT_ONCE])

    def _cancel(self, some: list[JobId]) -> None:
        """Again when it meets the worker in a deadlock, as it now and then does."""
        while True:
            with suppress(asyncpg.DeadlockDetectedError):
                self._finish(self._queries.mark_job_as_cancelled(some))
                return

    def grow(self, numbers: range) -> None:
        [first] = self._enqueue_all(numbers[:1])
        self._finish(self._connection.execute(GROW, first, numbers.start + 1, numbers.stop - 1))

    def claim(self, numbers: range) -> int:
        taken = self._queries.dequeue(
            batch_size=len(numbers),
            entrypoints={ENTRYPOINT: EntrypointExecutionParameter(concurrency_limit=0)},
            queue_manager_id=uuid.uuid4(),
            global_concurrency_limit=None,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
        )
        return len(self._finish(taken))

    def page(self, numbers: range) -> int:
        return len(self._finish(self._queries.browse_queue(limit=len(numbers), offset=numbers.start)))

    def _enqueue_all(self, numbers: range) -> list[JobId]:
        payloads: list[bytes | None] = [_payload(number) for number in numbers]
        return self._finish(self._queries.enqueue([ENTRYPOINT] * len(payloads), payloads, [0] * len(payloads)))

    async def _one_at_a_time(self, numbers: range) -> None:
        for number in numbers:
            await self._queries.enqueue(ENTRYPOINT, _payload(number))

    def _finish(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        return self._loop.run_until_complete(coroutine)


def _payload(number: int) -> bytes:
    return str(number).encode()


def work(url: str) -> None:
    uvloop.run(_work(url))  # as pgq run does


async def _work(url: str) -> None:
    async with asyncpg.create_pool(url) as pool:
        worker = PgQueuer.from_asyncpg_pool(pool)

        @worker.entrypoint(ENTRYPOINT)
        async def noop(job: Job) -> None:
            report(int(job.payload or b""))

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.shutdown.set)
        await worker.run(batch_size=BATCH, heartbeat_timeout=HEARTBEAT_TIMEOUT)


if __name__ == "__main__":
    speak(Client, work)
