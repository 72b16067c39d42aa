"""Dramatiq with Redis as broker and result backend."""

from __future__ import annotations

import os
import sys
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.cli import main, make_argument_parser
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benches.peers.adapters.speaking import RESULT, NotOffered, report, speak

URL = "PENSTOCK_BENCH_URL"
"""The environment variable that tells the worker's processes where Redis is."""


def declare(url: str) -> Any:
    """Make the broker with its one actor, and answer the actor."""
    broker = RedisBroker(url=url)
    broker.add_middleware(Results(backend=RedisBackend(url=url)))
    dramatiq.set_broker(broker)

    @dramatiq.actor(actor_name="noop", store_results=True)
    def noop(number: int) -> dict[str, str]:
        report(number)
        return RESULT

    return noop


def declare_in_worker() -> None:
    """What each process of the worker calls first."""
    declare(os.environ[URL])


class Client:
    """Who submits and asks."""

    def __init__(self, url: str) -> None:
        self._noop = declare(url)
        self._redis = self._noop.broker.client
        self._work = dramatiq.group([])

    def prepare(self, _: range) -> None:
        self._redis.ping()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._noop.send(number)

    def enqueue_in_bulk(self, numbers: range) -> None:
        dramatiq.group(self._noop.message(number) for number in numbers).run()

    def left(self, _: range) -> int:
        """The messages of the queue: each stays among them, fetched or not, until it is acknowledged."""
        return int(self._redis.hlen("dramatiq:default.msgs"))

    def begin(self, numbers: range) -> None:
        self._work = dramatiq.group(self._noop.message(number) for number in numbers).run()

    def progress(self, _: range) -> int:
        return int(self._work.completed_count)

    def cancel(self, _: range) -> None:
        raise NotOffered("not in Dramatiq itself: dramatiq-abort, by others, is a middleware that aborts one message")


def work(url: str) -> None:
    """Two processes, as the program ``dramatiq`` would run them."""
    os.environ[URL] = url
    module = "benches.peers.adapters.dramatiq_jobs"
    options = [f"{module}:declare_in_worker", "--processes", "2", "--threads", "8"]
    sys.exit(main(make_argument_parser().parse_args(options)))


if __name__ == "__main__":
    speak(Client, work)
