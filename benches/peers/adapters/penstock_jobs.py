"""Penstock itself: single-step jobs with an owner, their history and their result kept."""

from __future__ import annotations

import signal
import threading
from typing import Any

import structlog
from sqlalchemy import text

from benches.peers.adapters.speaking import RESULT, report, speak
from penstock import JobState, Penstock
from penstock.operations.claim import claim
from penstock.worker.interpreter import settle_interpreter

OPEN = (JobState.QUEUED, JobState.RUNNING, JobState.RETRYING)


def application(url: str) -> Penstock:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    app = Penstock(url)

    @app.kind("noop")
    async def noop(item: Any) -> dict[str, str]:
        report(item.input["n"])
        return RESULT

    return app


class Client:
    """Who submits and asks."""

    def __init__(self, url: str) -> None:
        self._app = application(url)

    def prepare(self, _: range) -> None:
        self._app.system.migrate()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._app.submit("noop", {"n": number}, owner="ada")

    def enqueue_in_bulk(self, numbers: range) -> None:
        self._app.submit_many("noop", [{"n": number} for number in numbers], owner="ada")

    def left(self, _: range) -> int:
        return len(self._app.jobs.list(states=OPEN, limit=1))

    def begin(self, numbers: range) -> None:
        self._job = self._app.submit("noop", items=[{"n": number} for number in numbers], owner="ada").job.id

    def progress(self, _: range) -> int:
        return self._app.jobs.get(self._job).progress.processed

    def cancel(self, _: range) -> None:
        self._app.jobs.cancel(self._job, reason="the bench has seen enough")

    def grow(self, numbers: range) -> None:
        """Copies of the first item, behind the last one."""
        if not numbers.start:
            self.begin(range(1))
        named = {"job": self._job.hex, "first": max(numbers.start, 1) + 1, "last": numbers.stop}
        id_, series = _WORDS[self._app.store.dialect.name]
        with self._app.store.engine.begin() as connection:
            if self._app.store.dialect.name == "postgresql":
                connection.execute(text("SET LOCAL search_path = penstock"))
            connection.execute(text(_COPY.format(id=id_, series=series)), named)
            connection.execute(text(_OPEN.format(id=id_)), named)

    def claim(self, numbers: range) -> int:
        return len(claim(self._app.store, "noop", "the bench", size=len(numbers), lease_seconds=3600.0).items)

    def page(self, numbers: range) -> int:
        return len(self._app.items.list(self._job, after=numbers.start, limit=len(numbers)))


_COPY = """
INSERT INTO job_items (job_id, user_id, kind, position, input_json, updated_at)
SELECT job_id, user_id, kind, series.n, input_json, updated_at
FROM job_items, {series} WHERE job_id = {id} AND position = 1
"""
_OPEN = "UPDATE jobs SET total_items = :last, last_claimable = :last WHERE id = {id}"
_WORDS = {
    "postgresql": ("CAST(:job AS uuid)", "generate_series(CAST(:first AS int), CAST(:last AS int)) AS series(n)"),
    "sqlite": (
        ":job",
        "(WITH RECURSIVE c(n) AS (SELECT :first UNION ALL SELECT n + 1 FROM c WHERE n < :last) SELECT * FROM c) series",
    ),
}


def work(url: str) -> None:
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    settle_interpreter()  # as penstock worker does
    with application(url).working():
        told.wait()


if __name__ == "__main__":
    speak(Client, work)
