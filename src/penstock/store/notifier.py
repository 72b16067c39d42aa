"""Listening for new work and stopped jobs, instead of polling.

How a worker is told by other processes is the database's: PostgreSQL tells (LISTEN), a SQLite file is looked at
(:meth:`penstock.store.dialects.dialect.Dialect.new_listener`). A lost connection is made again, and everybody is woken
then, because nobody knows what was missed. What this process itself commits is announced by the store, at once; so is
that the database answers again.
"""

from __future__ import annotations

import random
import threading
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from penstock.errors import PenstockError
from penstock.store.dialects.dialect import CannotListen, Listener
from penstock.store.engine import OnNotices, Store
from penstock.store.peers import Presence

DEAF_POLL_SECONDS = 1.0
"""The longest pause between two polls while no notices arrive."""
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 0.5
"""Between two tries to listen: one of a worker's threads that looks often is enough, since it wakes the others."""
_LOOK_AGAIN_SECONDS = 60.0
"""How often to try again where a pooler does not keep sessions."""
_log = structlog.get_logger("penstock.notifier")


class Notifier:
    """A thread that listens for the whole worker."""

    def __init__(self, store: Store, on_notices: OnNotices) -> None:
        self._store = store
        self._on_notices = on_notices
        self._presence: Presence | None = None
        self._stop = threading.Event()
        self._pause = threading.Event()
        self.listening = threading.Event()
        self._thread: threading.Thread | None = None
        self._listener: Listener | None = None
        self._failures = 0
        self._reported_error: str | None = None
        driver: Any = store.engine.dialect.loaded_dbapi
        self._errors: tuple[type[Exception], ...] = (SQLAlchemyError, driver.Error, OSError, PenstockError)
        store.listen(self._told_by_store)

    def start(self, presence: Presence | None) -> None:
        """Begin to listen; ``presence`` is the worker's own socket, if it has one."""
        self._presence = presence
        if self._store.is_in_memory:
            self.listening.set()
            return
        self._thread = threading.Thread(target=self._listen_until_stopped, name="penstock-notifier", daemon=True)
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
        self._on_notices(notices)

    def _listen_until_stopped(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
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
            "cannot listen for new work; polling continues",
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
        """From now on the lanes poll, and more often: wake them so that they do."""
        if self.listening.is_set():
            self.listening.clear()
            self._on_notices(None)

    def _begin_to_hear(self) -> None:
        if self._failures or self._reported_error:
            _log.info("listening for new work", failures=self._failures)
        self._failures, self._reported_error = 0, None
        self.listening.set()
        self._on_notices(None)  # nobody knows what was missed

    def _listen(self) -> None:
        self._listener = self._store.dialect.new_listener(self._store, self._presence)
        if self._stop.is_set():
            return
        try:
            self._listener.listen(self._begin_to_hear, self._on_notices)
        except CannotListen as error:
            self._be_deaf()
            if str(error) != self._reported_error:
                self._reported_error = str(error)
                _log.warning(
                    "work submitted elsewhere is found by polling, not by notices; "
                    "set PENSTOCK_LISTEN_URL to an address that leads to the server directly",
                    reason=str(error),
                    every_seconds=DEAF_POLL_SECONDS,
                )
            self._rest(_LOOK_AGAIN_SECONDS)
