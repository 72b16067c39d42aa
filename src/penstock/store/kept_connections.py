"""Connections that are not handed back to the pool after each transaction, because somebody waits for the next one.

Taking one out of the pool, setting it up and putting it back costs as much as a small statement does. SQLite's one
writer keeps his, and those who read a single statement keep theirs; on a server those for single statements are kept in
AUTOCOMMIT. At most half of the pool is kept, so that nobody waits for a connection that does nothing.

Only a clean connection is kept. One on which anything failed goes back to the pool, which takes its transaction back,
or closes it where even that fails. One that the other side has closed meanwhile is not handed out (``is_usable``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine

from penstock.errors import PenstockError


class KeptConnections:
    """A few connections of an engine, ready for use; with ``max_idle=0`` none is kept, and each is closed for sure."""

    def __init__(
        self, engine: Engine, *, max_idle: int, is_usable: Callable[[Connection], bool] = lambda _: True, **options: Any
    ) -> None:
        self._engine = engine
        self._max_idle = max_idle
        self._is_usable = is_usable
        self._options = options
        self._idle: list[Connection] = []
        self._changing = threading.Lock()

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection for the length of a ``with`` block."""
        connection = self._take()
        try:
            yield connection
        except PenstockError:
            # What was asked for was refused, by us: nothing is wrong with the connection.
            self._give_back(connection)
            raise
        except BaseException:
            self._let_go(connection)
            raise
        self._give_back(connection)

    def close(self) -> None:
        """Close the idle ones."""
        with self._changing:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        while (connection := self._pop_idle()) is not None:
            try:
                if self._is_usable(connection):
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.invalidate()
            connection.close()
        return self._engine.connect().execution_options(**self._options)

    def _pop_idle(self) -> Connection | None:
        with self._changing:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        if connection.invalidated or connection.in_transaction():
            self._let_go(connection)
            return
        with self._changing:
            if len(self._idle) < self._max_idle:
                self._idle.append(connection)
                return
        connection.close()

    def _let_go(self, connection: Connection) -> None:
        was_lost = connection.invalidated
        if connection.in_transaction():
            # Not even its rollback works: what it holds, locks above all, ends with it.
            connection.invalidate()
        connection.close()
        if was_lost:
            # The server went away: the others are broken too, and each would tell somebody who waits.
            self.close()
