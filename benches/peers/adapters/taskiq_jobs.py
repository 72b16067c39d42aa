"""TaskIQ with taskiq-redis: the stream broker, which acknowledges, and Redis for the results, kept without end."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from redis.asyncio import Redis
from taskiq import AsyncBroker, AsyncTaskiqTask
from taskiq.cli.common_args import LogLevel
from taskiq.cli.worker.args import WorkerArgs
from taskiq.cli.worker.run import run_worker
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from benches.peers.adapters.speaking import RESULT, NotOffered, report, speak

URL = "PENSTOCK_BENCH_TASKIQ_URL"
"""The environment variable that tells a worker's processes where Redis is."""

PROCESSES = 2
AT_A_TIME = 100


async def noop(number: int) -> dict[str, str]:
    """The job."""
    report(number)
    return RESULT


def broker(url: str) -> RedisStreamBroker:
    """The broker, with its one task."""
    one = RedisStreamBroker(url)
    one.with_result_backend(RedisAsyncResultBackend(url))
    one.register_task(noop, task_name="noop")
    return one


def broker_of_a_worker() -> AsyncBroker:
    """What each of a worker's processes calls."""
    return broker(os.environ[URL])


class Client:
    """Who submits and asks."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._broker = broker(url)
        task = self._broker.find_task("noop")
        assert task is not None
        self._noop = task
        self._redis = Redis.from_url(url)
        self._work: list[AsyncTaskiqTask[Any]] = []

    def prepare(self, _: range) -> None:
        """Make the stream's group of consumers: by default it sees only what was sent after it was made."""
        self._runner.run(self._broker.startup())

    def enqueue(self, numbers: range) -> None:
        async def one_at_a_time() -> None:
            for number in numbers:
                await self._noop.kiq(number)

        self._runner.run(one_at_a_time())

    def enqueue_in_bulk(self, numbers: range) -> None:
        raise NotOffered("no bulk call in its API: kiq sends one task")

    def left(self, _: range) -> int:
        """What the group has not been given, and what it has not acknowledged; that follows the stored result."""
        [group] = self._runner.run(self._redis.xinfo_groups(self._broker.queue_name))
        return int(group["lag"] + group["pending"])

    def begin(self, numbers: range) -> None:
        async def many_at_a_time() -> None:
            for first in range(0, len(numbers), AT_A_TIME):
                some = numbers[first : first + AT_A_TIME]
                self._work += await asyncio.gather(*(self._noop.kiq(number) for number in some))

        self._work = []
        self._runner.run(many_at_a_time())

    def progress(self, _: range) -> int:
        async def ready() -> int:
            ended = 0
            for first in range(0, len(self._work), AT_A_TIME):
                some = self._work[first : first + AT_A_TIME]
                ended += sum(await asyncio.gather(*(task.is_ready() for task in some)))
            return ended

        return self._runner.run(ready())

    def cancel(self, _: range) -> None:
        raise NotOffered("not in TaskIQ itself: taskiq-cancellation, by others, cancels one task")


def work(url: str) -> None:
    """What ``taskiq worker`` does, quietly.

    By default its processes did not end within 20 seconds of the signal; with -1 the first signal interrupts them.
    """
    os.environ[URL] = url
    run_worker(
        WorkerArgs(
            broker="benches.peers.adapters.taskiq_jobs:broker_of_a_worker", modules=[], workers=PROCESSES,
            log_level=LogLevel.WARNING, hardkill_count=-1,
        )
    )  # fmt: skip


if __name__ == "__main__":
    speak(Client, work)
