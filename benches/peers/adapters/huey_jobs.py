"""Huey, on Redis or on SQLite: plain tasks, their results kept until somebody reads them."""

from __future__ import annotations

from huey import Huey, RedisHuey, SqliteHuey
from huey.api import Result, TaskWrapper

from benches.peers.adapters.speaking import RESULT, report, speak

SQLITE = "sqlite:///"
PROCESSES_ON_REDIS = 2


def application(url: str) -> tuple[Huey, TaskWrapper]:
    """The queue, and its one task."""
    if url.startswith(SQLITE):
        huey = SqliteHuey("bench", filename=url.removeprefix(SQLITE))
    else:
        huey = RedisHuey("bench", url=url)

    # Huey puts the function's module into the task's name; here that would be __main__.
    def noop(number: int) -> dict[str, str]:
        report(number)
        return RESULT

    noop.__module__ = "bench"
    return huey, huey.task(name="noop")(noop)


class Client:
    """Who submits and asks."""

    def __init__(self, url: str) -> None:
        self._huey, self._noop = application(url)
        self._enqueued = 0
        self._work: list[Result] = []

    def prepare(self, _: range) -> None:
        self._huey.flush()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._noop(number)
        self._enqueued += len(numbers)

    def enqueue_in_bulk(self, numbers: range) -> None:
        """Huey's own call for many tasks; inside, it still writes them one by one."""
        self._noop.map(numbers)
        self._enqueued += len(numbers)

    def left(self, _: range) -> int:
        """Huey keeps no list of what runs: a task it took is open until its result is stored."""
        return int(self._huey.pending_count() or self._enqueued - self._huey.result_count())

    def begin(self, numbers: range) -> None:
        self._work = list(self._noop.map(numbers))
        self._enqueued += len(numbers)

    def progress(self, _: range) -> int:
        """Each result is asked for, and left where it is; without ``preserve`` the first to ask would take it."""
        return sum(result.get(preserve=True) is not None for result in self._work)

    def cancel(self, _: range) -> None:
        """One by one, the last first, because the workers come from the front; all of a task's would hit others."""
        for result in reversed(self._work):
            result.revoke()


def work(url: str) -> None:
    huey, _ = application(url)
    if url.startswith(SQLITE):
        consumer = huey.create_consumer(workers=1, worker_type="thread", graceful_signal="TERM")
    else:
        consumer = huey.create_consumer(workers=PROCESSES_ON_REDIS, worker_type="process", graceful_signal="TERM")
    consumer.run()


if __name__ == "__main__":
    speak(Client, work)
