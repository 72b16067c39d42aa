"""arq: jobs of one coroutine function on Redis, their results kept for its default of an hour."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

from arq.connections import RedisSettings, create_pool
from arq.constants import default_queue_name
from arq.jobs import Job, JobStatus
from arq.worker import Worker, func

from benches.peers.adapters.speaking import RESULT, NotOffered, report, speak

JOBS_AT_A_TIME = 100
CALLS_AT_A_TIME = 100
Answer = TypeVar("Answer")


async def noop(_: dict[Any, Any], number: int) -> dict[str, str]:
    """The job."""
    report(number)
    return RESULT


class Client:
    """Who submits and asks."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._redis = self._runner.run(create_pool(RedisSettings.from_dsn(url)))
        self._work: list[Job] = []

    def prepare(self, _: range) -> None:
        """Redis needs nothing made."""

    def enqueue(self, numbers: range) -> None:
        async def one_at_a_time() -> None:
            for number in numbers:
                await self._redis.enqueue_job("noop", number)

        self._runner.run(one_at_a_time())

    def enqueue_in_bulk(self, numbers: range) -> None:
        raise NotOffered("no bulk call in its API: enqueue_job takes one job")

    def left(self, _: range) -> int:
        """A job stays in the queue's sorted set until its result is stored."""
        return int(self._runner.run(self._redis.zcard(default_queue_name)))

    def begin(self, numbers: range) -> None:
        jobs = self._runner.run(_all(self._redis.enqueue_job("noop", number) for number in numbers))
        self._work = [job for job in jobs if job is not None]

    def progress(self, _: range) -> int:
        return self._runner.run(_all(job.status() for job in self._work)).count(JobStatus.complete)

    def cancel(self, _: range) -> None:
        """One by one, the last first, because the worker comes from the front."""
        self._runner.run(_all(_abort(job) for job in reversed(self._work)))


async def _all(calls: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """What the calls answer; many are under way at a time, each with a connection of its own."""
    waiting = iter(calls)
    answers: list[Answer] = []
    while some := list(islice(waiting, CALLS_AT_A_TIME)):
        answers += await asyncio.gather(*some)
    return answers


async def _abort(job: Job) -> None:
    """Ask for it, and do not wait for the end."""
    with suppress(asyncio.TimeoutError):
        await job.abort(timeout=0, poll_delay=0)


def work(url: str) -> None:
    """One process with one event loop: arq has no other kind of worker."""
    asyncio.set_event_loop(asyncio.new_event_loop())
    worker = Worker(
        [func(noop, name="noop")], redis_settings=RedisSettings.from_dsn(url), max_jobs=JOBS_AT_A_TIME,
        allow_abort_jobs=True,
    )  # fmt: skip
    worker.run()


if __name__ == "__main__":
    speak(Client, work)
