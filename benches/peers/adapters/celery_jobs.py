"""Celery with Redis as broker and result backend."""

from __future__ import annotations

from typing import Any

from celery import Celery, group
from celery.result import GroupResult
from redis import Redis

from benches.peers.adapters.speaking import RESULT, report, speak

STAMP = {"work": "one"}
"""What the tasks of one user's work have in common."""


def application(url: str) -> Any:
    """The Celery application with its one task."""
    app = Celery("penstock_bench", broker=url, backend=url)
    app.conf.update(
        broker_connection_retry_on_startup=True,
        task_acks_late=True,  # else a job that runs is in no list: a kill would lose it, and nobody could count it
    )

    @app.task(name="noop")
    def noop(number: int) -> dict[str, str]:
        report(number)
        return RESULT

    return app


class Client:
    """Who submits and asks."""

    def __init__(self, url: str) -> None:
        self._app = application(url)
        self._noop = self._app.tasks["noop"]
        self._redis = Redis.from_url(url)
        self._work: GroupResult

    def prepare(self, _: range) -> None:
        self._redis.ping()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._noop.delay(number)

    def enqueue_in_bulk(self, numbers: range) -> None:
        group(self._noop.s(number) for number in numbers).apply_async()

    def left(self, _: range) -> int:
        """What waits, and what a worker holds: with late acknowledgement a job is held until its result is kept."""
        both = self._redis.pipeline(transaction=True)
        both.llen("celery")
        both.hlen("unacked")
        return sum(both.execute())

    def begin(self, numbers: range) -> None:
        """A group with one stamp for all: of tasks revoked by their ids a worker remembers only 50,000."""
        units = group([self._noop.s(number) for number in numbers])
        units.stamp(**STAMP)
        self._work = units.apply_async()

    def progress(self, _: range) -> int:
        return int(self._work.completed_count())

    def cancel(self, _: range) -> None:
        self._app.control.revoke_by_stamped_headers(STAMP)


def work(url: str) -> None:
    """A worker with two processes, as ``celery worker`` would run it."""
    app = application(url)
    app.worker_main(
        [
            "worker", "--pool", "prefork", "--concurrency", "2", "--loglevel", "WARNING", "--without-gossip",
            "--without-mingle",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    speak(Client, work)
