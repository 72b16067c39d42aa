"""RQ: jobs named by their function, results kept in Redis for RQ's default of 500 seconds."""

from __future__ import annotations

from contextlib import suppress

from redis import Redis
from rq import Queue, SimpleWorker
from rq.group import Group
from rq.job import Job
from rq.worker_pool import WorkerPool

from benches.peers.adapters.speaking import RESULT, report, speak

NOOP = "benches.peers.adapters.rq_jobs.noop"
"""The function by its name: this module is also run as ``__main__``."""


def noop(number: int) -> dict[str, str]:
    """The one job."""
    report(number)
    return RESULT


class Client:
    """Who submits and asks."""

    def __init__(self, url: str) -> None:
        self._redis = Redis.from_url(url)
        self._queue = Queue(connection=self._redis)
        self._work: dict[str, Job] = {}

    def prepare(self, _: range) -> None:
        self._redis.ping()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._queue.enqueue(NOOP, number)

    def enqueue_in_bulk(self, numbers: range) -> None:
        self._queue.enqueue_many([Queue.prepare_data(NOOP, args=(number,)) for number in numbers])

    def left(self, _: range) -> int:
        """What waits, what a worker has just taken, and what runs; asked at one moment."""
        all_three = self._redis.pipeline(transaction=True)
        all_three.llen(self._queue.key)
        all_three.llen(self._queue.intermediate_queue_key)
        all_three.zcard(self._queue.started_job_registry.key)
        return sum(all_three.execute())

    def begin(self, numbers: range) -> None:
        data = [Queue.prepare_data(NOOP, args=(number,)) for number in numbers]
        self._work = {job.id: job for job in Group.create(self._redis).enqueue_many(self._queue, data)}

    def progress(self, _: range) -> int:
        """Its jobs in the registries of those that ended: a group can only fetch every job with all its fields."""
        registries = self._queue.finished_job_registry, self._queue.failed_job_registry
        return sum(len(self._work.keys() & registry.get_job_ids()) for registry in registries)

    def cancel(self, _: range) -> None:
        """One by one: a group has no such call, and to empty the queue would hit the jobs of others.

        The last first: at the front it races with the workers, and RQ raises for a job that ends meanwhile.
        """
        for job in reversed(self._work.values()):
            if job.is_queued:
                with suppress(ValueError):
                    job.cancel()


def work(url: str) -> None:
    """A pool of two workers that run jobs in their own process: RQ's other worker forks for every job."""
    redis = Redis.from_url(url)
    pool = WorkerPool([Queue(connection=redis)], connection=redis, num_workers=2, worker_class=SimpleWorker)
    pool.start(logging_level="WARNING")


if __name__ == "__main__":
    speak(Client, work)
