"""Connections that are not handed back to the pool after each transaction, because somebody waits for the next one.

Taking one out of the pool, setting it up and putting it back costs as much as a small statement does. SQLite's one
writer keeps his, and those who read a single statement keep theirs; on a server those for single statements are kept in
AUTOCOMMIT. At most half of the pool is kept, so that nobody waits for a connection that does nothing. One that the
other side has closed meanwhile is not handed out (``usable``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine


class KeptConnections:
    """A few connections of an engine, ready for use."""

    def __init__(
        self, engine: Engine, *, most: int, usable: Callable[[Connection], bool] | None = None, **options: Any
    ) -> None:
        self._engine = engine
        self._most = most
        self._usable = usable
        self._options = options
        self._idle: list[Connection] = []
        self._changing = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Connection]:
        """A connection for the length of a ``with`` block."""
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Let go of those that are idle."""
        with self._changing:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        while (connection := self._idle_one()) is not None:
            if self._usable is None or self._usable(connection):
                return connection
            connection.invalidate()
            connection.close()
        return self._engine.connect().execution_options(**self._options)

    def _idle_one(self) -> Connection | None:
        with self._changing:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        if connection.invalidated:
            # The server went away: the others are broken too, and each would tell somebody who waits.
            connection.close()
            self.close()
            return
        with self._changing:
            if len(self._idle) < self._most:
                self._idle.append(connection)
                return
        connection.close()
