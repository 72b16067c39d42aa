"""PgQueuer over asyncpg: a job leaves the queue's table for its log when it is done; nothing keeps a result."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benches.peers.adapters.speaking import report, speak

BATCH = 500
ENTRYPOINT = "noop"
Answer = TypeVar("Answer")


class Client:
    """Who enqueues and asks: one connection, on an event loop that rests between two commands."""

    def __init__(self, url: str) -> None:
        self._loop = uvloop.new_event_loop()
        self._queries = Queries.from_asyncpg_connection(self._finish(asyncpg.connect(url)))

    def prepare(self, _: range) -> None:
        self._finish(self._queries.install())

    def enqueue(self, numbers: range) -> None:
        self._finish(self._one_at_a_time(numbers))

    def enqueue_in_bulk(self, numbers: range) -> None:
        payloads: list[bytes | None] = [_payload(number) for number in numbers]
        self._finish(self._queries.enqueue([ENTRYPOINT] * len(payloads), payloads, [0] * len(payloads)))

    def left(self, _: range) -> int:
        return sum(one.count for one in self._finish(self._queries.queue_size()))

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
        await worker.run(batch_size=BATCH)


if __name__ == "__main__":
    speak(Client, work)
