"""Hearing of new work, and of jobs that were stopped, without asking for it.

PostgreSQL tells (LISTEN on one connection of its own); a lost connection is made again, and everybody is woken then,
because nobody knows what was missed. SQLite cannot tell another process: there a process of the same user and machine
is told by a socket of its own (``store.neighbours``). For everybody else SQLite's ``data_version`` changes with every
commit: reading it takes microseconds, so it is looked at ten times a second. What this process itself commits is
announced by the store, at once.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from penstock.errors import PenstockError
from penstock.store.engine import Store
from penstock.store.neighbours import Presence
from penstock.store.sqlite_engine import is_current

Heard = Callable[[frozenset[str] | None], None]
"""Called with notices, or None when any kind may have work."""

_WATCH_SECONDS = 0.1
_LISTEN_SECONDS = 1.0
_log = structlog.get_logger("penstock.wakeups")


class Wakeups:
    """A thread that listens for the whole worker."""

    def __init__(self, store: Store, heard: Heard) -> None:
        self._store = store
        self._heard = heard
        self._presence: Presence | None = None
        self._stop = threading.Event()
        self.listening = threading.Event()
        self._thread: threading.Thread | None = None
        driver: Any = store.engine.dialect.loaded_dbapi
        self._errors: tuple[type[Exception], ...] = (PenstockError, SQLAlchemyError, driver.Error, OSError)
        store.listen(heard)

    def start(self, presence: Presence | None) -> None:
        """Begin to listen; ``presence`` is the worker's own socket, if it has one."""
        self._presence = presence
        if isinstance(self._store.engine.pool, StaticPool):
            self.listening.set()
            return
        listen = self._listen if self._store.ways.name == "postgresql" else self._watch
        self._thread = threading.Thread(
            target=self._again_and_again, args=(listen,), name="penstock-wakeups", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._store.unlisten(self._heard)
        if self._thread is not None:
            if self._store.ways.name == "postgresql":
                # Its own notice ends the thread's wait; where even that fails, the wait ends by itself.
                with contextlib.suppress(SQLAlchemyError), self._store.engine.begin() as connection:
                    self._store.ways.tell(connection, self._store.placement.channel, [""])
            self._thread.join()

    def _again_and_again(self, listen: Callable[[Connection], None]) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                with self._store.engine.connect() as connection:
                    listen(connection.execution_options(isolation_level="AUTOCOMMIT"))
            except self._errors as error:
                failures += 1
                _log.warning("cannot hear of new work; polling goes on", error=str(error).strip(), failures=failures)
                self.listening.clear()
                self._stop.wait(min(30.0, 2.0 ** min(failures, 5)) * (0.5 + random.random() / 2))

    def _listen(self, connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        driver.execute(f"LISTEN {self._store.placement.channel}")
        self._heard(None)
        self.listening.set()
        while not self._stop.is_set():
            for notice in driver.notifies(timeout=_LISTEN_SECONDS, stop_after=1):
                self._heard(frozenset({notice.payload}))

    def _watch(self, connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        cursor = driver.cursor()
        seen = cursor.execute("PRAGMA data_version").fetchone()
        self.listening.set()
        while not self._stop.is_set() and is_current(connection):
            told = self._told()
            version = cursor.execute("PRAGMA data_version").fetchone()
            if told:
                self._heard(told)
            elif version != seen:
                self._heard(None)
            seen = version

    def _told(self) -> frozenset[str]:
        """What a neighbour has told; wait for it a little."""
        if self._presence is not None:
            return self._presence.hear(_WATCH_SECONDS)
        self._stop.wait(_WATCH_SECONDS)
        return frozenset()
