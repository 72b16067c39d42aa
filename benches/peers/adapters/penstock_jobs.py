"""Penstock itself: single-step jobs with an owner, their history and their result kept."""

from __future__ import annotations

import signal
import threading
from typing import Any

import structlog

from benches.peers.adapters.speaking import RESULT, report, speak
from penstock import JobState, Penstock
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
        self._app.migrate()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._app.submit("noop", {"n": number}, owner="ada")

    def enqueue_in_bulk(self, numbers: range) -> None:
        self._app.submit_many("noop", [{"n": number} for number in numbers], owner="ada")

    def left(self, _: range) -> int:
        return len(self._app.jobs(states=OPEN, limit=1))


def work(url: str) -> None:
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    settle_interpreter()  # as penstock worker does
    with application(url).working():
        told.wait()


if __name__ == "__main__":
    speak(Client, work)
