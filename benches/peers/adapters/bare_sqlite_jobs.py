"""No library at all: our own rows, written by the sqlite3 module alone. What a pick-up cannot be quicker than."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing

from sqlalchemy.engine import make_url

from benches.ceilings_sqlite import SQLiteCeiling
from benches.peers.adapters.speaking import report, speak
from penstock import Penstock
from penstock.store.peers import Peers

NOTICE = "noop"


class Client:
    """Who writes a job, its item and the first line of its history, and tells the worker."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._workers = Peers.of(make_url(url))

    def prepare(self, _: range) -> None:
        with closing(Penstock(self._url)) as app:
            app.system.migrate()
        self._driver = SQLiteCeiling(self._url)

    def enqueue(self, numbers: range) -> None:
        for _ in numbers:
            self._driver.submit_jobs(1)
            self._workers.tell([NOTICE])


def work(url: str) -> None:
    """Wait to be told; take one job after the other, and write its end."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    presence = Peers.of(make_url(url)).settle(f"bare:{os.getpid()}")
    assert presence is not None
    driver = SQLiteCeiling(url)
    done = 0
    while not told.is_set():
        presence.hear(0.1)
        while picked := driver.start_jobs(1, one_by_one=True):
            report(done)
            done += driver.succeed_jobs(*picked, one_by_one=True)
    driver.close()
    presence.leave()


if __name__ == "__main__":
    speak(Client, work)
