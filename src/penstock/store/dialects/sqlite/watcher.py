"""Noticing what other processes write to a SQLite file, which has no notifications.

A process of the same user and machine is told by a socket of its own (``store.peers``). For everybody else SQLite's
``data_version`` changes with every commit: reading it takes microseconds, so it is looked at ten times a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.store.dialects.sqlite.engine import is_current

if TYPE_CHECKING:
    from penstock.store.engine import Store
    from penstock.store.peers import Presence

_WATCH_SECONDS = 0.1


class FileWatcher:
    """One connection that looks."""

    def __init__(self, store: Store, presence: Presence | None) -> None:
        self._store = store
        self._presence = presence
        self._stop = threading.Event()

    def listen(self, on_ready: Callable[[], None], on_notices: Callable[[frozenset[str] | None], None]) -> None:
        """Call ``on_ready`` once it watches, ``on_notices`` with what arrives; with None after an unknown commit."""
        with self._store.engine.connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            driver: Any = connection.connection.driver_connection
            cursor = driver.cursor()
            last_version = cursor.execute("PRAGMA data_version").fetchone()
            on_ready()
            while not self._stop.is_set() and is_current(connection):
                notices = self._wait_for_notices()
                version = cursor.execute("PRAGMA data_version").fetchone()
                if notices:
                    on_notices(notices)
                elif version != last_version:
                    on_notices(None)
                last_version = version

    def close(self) -> None:
        """End it within a tenth of a second, from another thread."""
        self._stop.set()

    def _wait_for_notices(self) -> frozenset[str]:
        """What a peer has told; waited for a little."""
        if self._presence is not None:
            return self._presence.hear(_WATCH_SECONDS)
        self._stop.wait(_WATCH_SECONDS)
        return frozenset()
