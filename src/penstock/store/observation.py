"""Observing a store at work: the one place where tests stop, order and cut what it does.

An observer is called, in the thread that works, with a name and the connection:

- ``write lock``, without a connection, before a writer queues for SQLite's one place to write;
- a query's name before its statement is sent, ``take turns`` before an advisory lock, ``notify`` before a NOTIFY;
- ``before COMMIT`` and ``after COMMIT``; of a statement that is a transaction by itself only the latter.

It may wait there, or raise; the transaction is then taken back as after any error. A clock that a test holds is read
after it has returned, so each statement has a time of its own, as on a real server. What a caller does in their own
transaction is seen up to their COMMIT, which is theirs.

A transaction that was promised to be a single statement, and is not, fails at its second.

Without an observer a store makes plain transactions, and none of this is asked for at any statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from penstock.store.engine import Observer, Store
from penstock.store.queries.built_once import name_of
from penstock.store.statement_cache import Row, Statement
from penstock.store.transaction import Transaction, Value

TAKE_TURNS, NOTIFY = "take turns", "notify"


@contextmanager
def observe(store: Store, observer: Observer) -> Iterator[None]:
    """Call ``observer`` for all that the store does inside the block.

    >>> from penstock.store.engine import open_store
    >>> store = open_store("sqlite://")
    >>> with observe(store, lambda name, connection: print(name)):
    ...     store.write(lambda transaction: transaction.take_turns("a name"))
    write lock
    take turns
    before COMMIT
    after COMMIT
    >>> store.close()
    """

    def new_transaction(connection: Connection, store: Store, single_statement: bool) -> Transaction:
        return _ObservedTransaction(connection, store, single_statement, observer)

    store.new_transaction, store.observer = new_transaction, observer
    try:
        yield
    finally:
        store.new_transaction, store.observer = Transaction, None


class _ObservedTransaction(Transaction):
    """A transaction that announces each statement."""

    def __init__(self, connection: Connection, store: Store, single_statement: bool, observer: Observer) -> None:
        super().__init__(connection, store, single_statement)
        self._observer = observer
        self._last: str | None = None

    def rows(self, statement: Statement, parameters: dict[str, Any]) -> Sequence[tuple[Any, ...]]:
        self._announce(name_of(statement))
        return super().rows(statement, parameters)

    def fetch(self, row: type[Row], statement: Statement, parameters: dict[str, Any] | None = None) -> list[Row]:
        self._announce(name_of(statement))
        return super().fetch(row, statement, parameters)

    def values(self, type_: type[Value], statement: Statement, parameters: dict[str, Any] | None = None) -> list[Value]:
        self._announce(name_of(statement))
        return super().values(type_, statement, parameters)

    def execute(self, statement: Statement, parameters: dict[str, Any] | None = None) -> int:
        self._announce(name_of(statement))
        return super().execute(statement, parameters)

    def take_turns(self, name: str) -> None:
        self._announce(TAKE_TURNS)
        super().take_turns(name)

    def _notify(self, notices: Sequence[str]) -> None:
        self._announce(NOTIFY)
        super()._notify(notices)

    def _announce(self, name: str) -> None:
        if self.single_statement and self._last is not None:
            raise AssertionError(f"promised to be a single statement, but {name} follows {self._last}")
        self._last = name
        self._observer(name, self.connection)
        self._fixed_now = self.store.clock.held()
