"""Procrastinate over psycopg: finished jobs and their events stay in the tables; what a task returns does not.

A job whose worker died stays ``doing`` until somebody asks for stalled jobs and retries them. The documentation gives a
periodic task for that, and the worker here has one, each minute.
"""

from __future__ import annotations

import asyncio

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from benches.peers.adapters.speaking import RESULT, report, speak

CONCURRENCY = 20
CONNECTIONS = 10
TASK = "noop"


class Client:
    """Who defers and asks, without an event loop."""

    def __init__(self, url: str) -> None:
        self._app = App(connector=SyncPsycopgConnector(conninfo=url))
        self._app.open()

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
