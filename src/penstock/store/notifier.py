"""Hearing of new work, and of jobs that were stopped, without asking for it.

PostgreSQL tells (LISTEN on one connection of its own, ``store.postgresql_listener``); a lost connection is made again,
and everybody is woken then, because nobody knows what was missed. SQLite cannot tell another process: there a process
of the same user and machine is told by a socket of its own (``store.neighbours``). For everybody else SQLite's
``data_version`` changes with every commit: reading it takes microseconds, so it is looked at ten times a second. What
this process itself commits is announced by the store, at once; so is that the database answers again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from penstock.errors import PenstockError
from penstock.store.engine import Heard, Store
from penstock.store.peers import Presence
from penstock.store.sqlite_engine import is_current

if TYPE_CHECKING:
    from penstock.store.postgresql_listener import PostgreSQLListener

DEAF_POLL_SECONDS = 1.0
"""How often a worker looks for work at the longest while nobody can tell it."""
_WATCH_SECONDS = 0.1
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 0.5
"""Between two tries to listen: one of a worker's threads that looks often is enough, since it wakes the others."""
_LOOK_AGAIN_SECONDS = 60.0
"""Whether a pooler has come to keep sessions is not asked every second."""
_log = structlog.get_logger("penstock.notifier")


class Notifier:
    """A thread that listens for the whole worker."""

    def __init__(self, store: Store, heard: Heard) -> None:
        self._store = store
        self._heard = heard
        self._presence: Presence | None = None
        self._stop = threading.Event()
        self._pause = threading.Event()
        self.listening = threading.Event()
        self._thread: threading.Thread | None = None
        self._listener: PostgreSQLListener | None = None
        self._failures = 0
        self._said: str | None = None
        driver: Any = store.engine.dialect.loaded_dbapi
        self._errors: tuple[type[Exception], ...] = (SQLAlchemyError, driver.Error, OSError, PenstockError)
        store.listen(self._told_by_store)

    def start(self, presence: Presence | None) -> None:
        """Begin to listen; ``presence`` is the worker's own socket, if it has one."""
        self._presence = presence
        if isinstance(self._store.engine.pool, StaticPool):
            self.listening.set()
            return
        listen = self._listen if self._store.dialect.name == "postgresql" else self._watch
        self._thread = threading.Thread(
            target=self._again_and_again, args=(listen,), name="penstock-wakeups", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._pause.set()
        self._store.unlisten(self._told_by_store)
        if self._thread is not None:
            listener = self._listener
            if listener is not None:
                listener.close()
            self._thread.join()

    def _told_by_store(self, notices: frozenset[str] | None) -> None:
        """What this process has committed; None when the database answers again after it was away."""
        if notices is None:
            self._pause.set()
        self._heard(notices)

    def _again_and_again(self, listen: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                listen()
            except self._errors as error:
                self._wait_after(error, None)
            except Exception as error:  # noqa: BLE001 - who hears of new work must outlive every mistake, and say it
                self._wait_after(error, error)

    def _wait_after(self, error: Exception, unforeseen: Exception | None) -> None:
        if self._stop.is_set():
            return
        self._failures += 1
        wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(self._failures, 10)) * (0.5 + random.random() / 2)
        _log.warning(
            "cannot hear of new work; polling goes on",
            error=str(error).strip(),
            failures=self._failures,
            wait=wait,
            exc_info=unforeseen,
        )
        self._be_deaf()
        self._rest(wait)

    def _rest(self, seconds: float) -> None:
        """Wait; the database that answers again ends it, and so does the end."""
        self._pause.wait(seconds)
        if not self._stop.is_set():
            self._pause.clear()

    def _be_deaf(self) -> None:
        """From now on the lanes look for themselves, and more often: wake them so that they do."""
        if self.listening.is_set():
            self.listening.clear()
            self._heard(None)

    def _begin_to_hear(self) -> None:
        if self._failures or self._said:
            _log.info("new work is heard of", failures=self._failures)
        self._failures, self._said = 0, None
        self.listening.set()
        self._heard(None)  # nobody knows what was missed

    def _listen(self) -> None:
        from penstock.store.postgresql_listener import CannotListen, PostgreSQLListener

        self._listener = PostgreSQLListener(self._store)
        if self._stop.is_set():
            return
        try:
            self._listener.listen(self._begin_to_hear, lambda notice: self._heard(frozenset({notice})))
        except CannotListen as error:
            self._be_deaf()
            if str(error) != self._said:
                self._said = str(error)
                _log.warning(
                    "work submitted elsewhere is found by looking for it, not by notices; "
                    "set PENSTOCK_LISTEN_URL to an address that leads to the server directly",
                    reason=str(error),
                    every_seconds=DEAF_POLL_SECONDS,
                )
            self._rest(_LOOK_AGAIN_SECONDS)

    def _watch(self) -> None:
        with self._store.engine.connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            driver: Any = connection.connection.driver_connection
            cursor = driver.cursor()
            seen = cursor.execute("PRAGMA data_version").fetchone()
            self._begin_to_hear()
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
