"""Oban for Python: jobs stay in their table with what they recorded; there are no groups, so we keep a list of ids."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop
from oban import Oban, Record, worker
from oban._query import Query
from oban.job import Job
from oban.schema import install

from benches.peers.adapters.speaking import RESULT, NotOffered, report, speak

LIMIT = 500
QUEUE = "noop"
OPEN = ["available", "scheduled", "retryable", "suspended", "executing"]
ENDED = "SELECT count(*) FROM oban_jobs WHERE id = ANY(%s) AND state::text <> ALL(%s)"
GROW = """
INSERT INTO oban_jobs (queue, worker, max_attempts, args)
SELECT queue, worker, max_attempts, jsonb_build_object('number', number)
FROM oban_jobs, generate_series(%(first)s::bigint, %(last)s::bigint) AS number
WHERE id = %(id)s
"""
Answer = TypeVar("Answer")


class Noop:
    """The one kind of job."""

    async def process(self, job: Job) -> Record:
        report(job.args["number"])
        return Record(RESULT)


NOOP: Any = worker(queue=QUEUE)(Noop)


class Client:
    """Who enqueues and asks, on an event loop that rests between two commands."""

    def __init__(self, url: str) -> None:
        self._loop = uvloop.new_event_loop()
        self._finish(self._connect(url))
        self._units: list[int] = []

    async def _connect(self, url: str) -> None:
        self._pool = await Oban.create_pool(url)
        self._oban = Oban(pool=self._pool)
        self._query = Query(self._pool)

    def prepare(self, _: range) -> None:
        self._finish(install(self._pool))

    def enqueue(self, numbers: range) -> None:
        self._finish(self._one_at_a_time(numbers))

    async def _one_at_a_time(self, numbers: range) -> None:
        for number in numbers:
            await self._oban.enqueue(_job(number))

    def enqueue_in_bulk(self, numbers: range) -> None:
        self._finish(self._oban.enqueue_many(_job(number) for number in numbers))

    def left(self, _: range) -> int:
        return sum(count for _, _, count in self._finish(self._query.count_jobs(OPEN)))

    def begin(self, numbers: range) -> None:
        jobs = self._finish(self._oban.enqueue_many(_job(number) for number in numbers))
        self._units = [job.id for job in jobs if job.id is not None]

    def progress(self, _: range) -> int:
        """By its table: its own calls read one job at a time."""
        return self._finish(self._ended())

    async def _ended(self) -> int:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(ENDED, (self._units, OPEN))
            [(count,)] = await cursor.fetchall()
        return count

    def cancel(self, _: range) -> None:
        self._finish(self._oban.cancel_many_jobs(self._units))

    def grow(self, numbers: range) -> None:
        self._finish(self._copy_one(numbers))

    async def _copy_one(self, numbers: range) -> None:
        one = await self._oban.enqueue(_job(numbers[0]))
        async with self._pool.connection() as connection:
            await connection.execute(GROW, {"id": one.id, "first": numbers[0] + 1, "last": numbers[-1]})

    def claim(self, numbers: range) -> int:
        return len(self._finish(self._query.fetch_jobs(len(numbers), QUEUE, "bench", "bench")))

    def page(self, _: range) -> None:
        raise NotOffered("Oban reads one job by its id; its lists are in the separate dashboard")

    def _finish(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        return self._loop.run_until_complete(coroutine)


def _job(number: int) -> Job:
    job: Job = NOOP.new({"number": number})
    return job


def work(url: str) -> None:
    uvloop.run(_work(url))


async def _work(url: str) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with await Oban.create_pool(url) as pool, Oban(pool=pool, queues={QUEUE: LIMIT}):
        await stopped.wait()


if __name__ == "__main__":
    speak(Client, work)
