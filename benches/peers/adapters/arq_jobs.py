"""arq: jobs of one coroutine function on Redis, their results kept for its default of an hour."""

from __future__ import annotations

import asyncio
from typing import Any

from arq.connections import RedisSettings, create_pool
from arq.constants import default_queue_name
from arq.worker import Worker, func

from benches.peers.adapters.speaking import RESULT, NotOffered, report, speak

JOBS_AT_A_TIME = 100


async def noop(_: dict[Any, Any], number: int) -> dict[str, str]:
    """The job."""
    report(number)
    return RESULT


class Client:
    """Who submits and asks."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._redis = self._runner.run(create_pool(RedisSettings.from_dsn(url)))

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


def work(url: str) -> None:
    """One process with one event loop: arq has no other kind of worker."""
    asyncio.set_event_loop(asyncio.new_event_loop())
    worker = Worker([func(noop, name="noop")], redis_settings=RedisSettings.from_dsn(url), max_jobs=JOBS_AT_A_TIME)
    worker.run()


if __name__ == "__main__":
    speak(Client, work)
