"""Procrastinate over psycopg: finished jobs and their events stay in the tables; what a task returns does not.

A job whose worker died stays ``doing`` until somebody asks for stalled jobs, those of a worker that has been silent for
30 s, and retries them. The documentation gives a periodic task for that, each ten minutes; the worker here has it each
minute.

There are no groups. One user's work is a queue of its own here, because a queue's jobs are counted by one call.
"""

from __future__ import annotations

import asyncio

import psycopg
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.sql import queries

from benches.peers.adapters.speaking import RESULT, NotOffered, report, speak

CONCURRENCY = 20
CONNECTIONS = 10
TASK = "noop"
USER = "one-user"
ENDED = ("succeeded", "failed", "cancelled", "aborted")
CANCELED_AT_ONCE = 1_000
GROW = """
    WITH new AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, priority, args)
        SELECT job.queue_name, job.task_name, job.priority, jsonb_build_object('number', number)
        FROM procrastinate_jobs AS job, generate_series(%(first)s::bigint, %(last)s::bigint) AS number
        WHERE job.id = %(job)s
        RETURNING id
    )
    INSERT INTO procrastinate_events (job_id, type) SELECT id, 'deferred' FROM new
"""
"""The job and its event, as a trigger writes it. The triggers are off, as they would notify twice for each job."""


class Client:
    """Who defers and asks, without an event loop."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connector = SyncPsycopgConnector(conninfo=url)
        self._app = App(connector=self._connector)
        self._app.open()
        self._units: list[int] = []
        self._claimer: int | None = None

    def prepare(self, _: range) -> None:
        self._app.schema_manager.apply_schema()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._app.configure_task(TASK).defer(number=number)

    def enqueue_in_bulk(self, numbers: range) -> None:
        self._app.configure_task(TASK).batch_defer(*({"number": number} for number in numbers))

    def left(self, _: range) -> int:
        queues = self._app.job_manager.list_queues(task=TASK)
        return sum(int(one["todo"]) + int(one["doing"]) for one in queues)

    def begin(self, numbers: range) -> None:
        task = self._app.configure_task(TASK, queue=USER)
        self._units = task.batch_defer(*({"number": number} for number in numbers))

    def progress(self, _: range) -> int:
        queues = self._app.job_manager.list_queues(queue=USER)
        return sum(int(one[status]) for one in queues for status in ENDED)

    def cancel(self, _: range) -> None:
        """Jobs are canceled one by one; a connection of one's own saves a commit for each."""
        with psycopg.connect(self._url) as connection:
            for count, unit in enumerate(self._units, 1):
                self._app.job_manager.cancel_job_by_id(unit, connection=connection)
                if not count % CANCELED_AT_ONCE:
                    connection.commit()

    def grow(self, numbers: range) -> None:
        job = self._app.configure_task(TASK).defer(number=numbers.start)
        with psycopg.connect(self._url) as connection:
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute(GROW, {"job": job, "first": numbers.start + 1, "last": numbers.stop - 1})

    def claim(self, numbers: range) -> int:
        """A worker takes one job at a time."""
        if self._claimer is None:
            self._claimer = int(self._connector.execute_query_one(queries["register_worker"])["worker_id"])
        taken = [
            self._connector.execute_query_one(queries["fetch_job"], queues=None, worker_id=self._claimer)
            for _ in numbers
        ]
        return sum(job["id"] is not None for job in taken)

    def page(self, _: range) -> None:
        raise NotOffered("list_jobs has neither limit nor offset: it reads every job that matches")


def work(url: str) -> None:
    asyncio.run(_work(url))


async def _work(url: str) -> None:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=CONNECTIONS, max_size=CONNECTIONS))

    @app.task(name=TASK)
    async def noop(number: int) -> dict[str, str]:
        report(number)
        return RESULT

    @app.periodic(cron="* * * * *")
    @app.task(name="retry_stalled", queueing_lock="retry_stalled")
    async def retry_stalled(**_when: int) -> None:
        for job in await app.job_manager.get_stalled_jobs():
            await app.job_manager.retry_job(job)

    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY)  # heeds SIGTERM by itself


if __name__ == "__main__":
    speak(Client, work)
