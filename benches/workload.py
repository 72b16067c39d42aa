"""The work both sides do: handlers that do nothing, and answer 200 bytes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import structlog

from penstock import Penstock
from penstock.worker.interpreter import settle_interpreter
from penstock.worker.worker import Worker

KIND = "noop"
WORKER = "bench:1:abcdef"
RESULT_BYTES = 200
LEASE_SECONDS = 30.0
RESULT = {"text": "r" * (RESULT_BYTES - len('{"text":""}'))}
RESULT_TEXT = orjson.dumps(RESULT).decode()
assert len(RESULT_TEXT) == RESULT_BYTES


def given(number: int) -> dict[str, int]:
    """The input of an item, or the params of a single-step job."""
    return {"n": number}


def given_text(number: int) -> str:
    """The same as it is kept."""
    return orjson.dumps(given(number)).decode()


def be_quiet() -> None:
    """Warnings only: log lines would be part of what is measured."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))


@contextmanager
def application(url: str) -> Iterator[Penstock]:
    """Ours, with the one kind the benches use."""
    app = Penstock(url)

    @app.kind(KIND)
    async def noop(_item: Any) -> dict[str, str]:
        return RESULT

    try:
        yield app
    finally:
        app.close()


@contextmanager
def working(app: Penstock) -> Iterator[Worker]:
    """A worker whose points are counted, so that nobody has to ask the database whether it is done."""
    settle_interpreter()  # as penstock worker does; the ceiling, in the same process, has the same of it
    worker = app.worker()
    worker.signals.listen()
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


def wait_until(worker: Worker, done: Callable[[], bool], seconds: float = 600.0) -> None:
    """Ask whether it is done each time the worker says that it has nothing left: asking while it works slows it."""
    give_up = time.monotonic() + seconds
    seen = 0
    while not done():
        assert time.monotonic() < give_up, f"not done after {seconds:g} s"
        worker.signals.wait("idle", seen + 1, timeout=5.0)
        seen = worker.signals.count("idle")
