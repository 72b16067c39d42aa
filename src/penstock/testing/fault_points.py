"""Stopping a program dead at a chosen statement, as a power cut would.

Every statement a store sends is a point, and so is the COMMIT, before and after; of a statement that commits by itself
(AUTOCOMMIT) only the moment before it and the one after. ``count_points`` tells how many an
operation has; ``stop_dead_at`` stops it at one of them: from then on nothing reaches the database any more, not even
the ROLLBACK, because the connection is torn down under the program. What the database makes of that is what it would
make of a dead client.

>>> from penstock.store.engine import open_store
>>> store = open_store("sqlite://")
>>> with count_points(store) as points:
...     store.write(lambda transaction: None)
>>> points
['before COMMIT', 'after COMMIT']
>>> store.close()
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, event

from penstock.store.engine import AFTER_COMMIT, BEFORE_COMMIT, WRITE_LOCK, Observer, Store
from penstock.store.observation import observe

_IDLE = 0
"""PostgreSQL's word for a session in which no transaction has begun."""


class StoppedDead(BaseException):
    """The program stopped here. No handler of ordinary errors may catch it."""


@contextmanager
def count_points(store: Store) -> Iterator[list[str]]:
    """List the points the operations inside come to."""
    signals: list[str] = []

    def note(name: str, _connection: Connection | None) -> None:
        if name != WRITE_LOCK:
            signals.append(name)

    with observe(store, note):
        yield signals


@contextmanager
def stop_dead_at(store: Store, number: int) -> Iterator[None]:
    """Stop at the ``number``-th point (the first is 0); :class:`StoppedDead` comes out of the operation inside."""
    with observe(store, _stopper(number)):
        yield


@contextmanager
def stop_migration_dead_at(store: Store, number: int) -> Iterator[None]:
    """The same for a migration, whose statements are no operation's: those that the store's engine sends."""
    with _statements_reached(store, _stopper(number)):
        yield


def _stopper(number: int) -> Observer:
    reached_count = 0

    def stop(name: str, connection: Connection | None) -> None:
        nonlocal reached_count
        if name == WRITE_LOCK:
            return  # nothing has begun
        reached_count += 1
        if reached_count <= number:
            return
        # Later points too: a dead program sends nothing, whatever its handlers would still like to do.
        tear_down(connection)
        raise StoppedDead(f"at point {number}, {name}")

    return stop


def _commits_by_itself(driver: Any) -> bool:
    """Is there no transaction to commit, because each statement was one by itself?"""
    return getattr(driver, "autocommit", None) is True and driver.pgconn.transaction_status == _IDLE


def tear_down(connection: Any) -> None:
    """Close the socket or the file under the driver, so that nothing more can be said on it."""
    driver = connection.connection.driver_connection
    with suppress(Exception):
        connection.invalidate()
    if driver is not None:
        with suppress(Exception):
            driver.close()


@contextmanager
def _statements_reached(store: Store, on_statement: Observer) -> Iterator[None]:
    """Call ``on_statement`` before each statement of the store's engine, and before and after each COMMIT."""
    dialect: Any = store.engine.dialect
    really_commit = dialect.do_commit
    current: list[Connection] = []

    def before_statement(
        connection: Connection, _cursor: object, statement: str, _parameters: object, _context: object, _many: bool
    ) -> None:
        if not statement.startswith("BEGIN"):
            on_statement(" ".join(statement.split())[:60], connection)

    def before_commit(connection: Connection) -> None:
        if not _commits_by_itself(connection.connection.driver_connection):
            on_statement(BEFORE_COMMIT, connection)
        current.append(connection)

    def commit(driver_connection: Any) -> None:
        really_commit(driver_connection)
        if current:
            on_statement(AFTER_COMMIT, current.pop())

    event.listen(store.engine, "before_cursor_execute", before_statement)
    event.listen(store.engine, "commit", before_commit)
    dialect.do_commit = commit
    try:
        yield
    finally:
        del dialect.do_commit
        event.remove(store.engine, "commit", before_commit)
        event.remove(store.engine, "before_cursor_execute", before_statement)


@contextmanager
def fail_at(store: Store, number: int, error: Exception) -> Iterator[None]:
    """The ``number``-th BEGIN, statement or COMMIT inside (the first is 0), and all after it, fail as the driver would.

    So does every ROLLBACK: whatever has broken the one has mostly broken the other. After the block all is well again.
    """
    dialect: Any = store.engine.dialect
    really_execute, really_commit, really_roll_back = dialect.do_execute, dialect.do_commit, dialect.do_rollback
    reached_count = 0

    def fail() -> None:
        nonlocal reached_count
        reached_count += 1
        if reached_count > number:
            raise error

    def execute(cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        fail()
        really_execute(cursor, statement, parameters, context)

    def commit(connection: Any) -> None:
        if not _commits_by_itself(connection):  # there it would say nothing to the server
            fail()
        really_commit(connection)

    def roll_back(connection: Any) -> None:
        if reached_count > number:
            raise error
        really_roll_back(connection)

    dialect.do_execute, dialect.do_commit, dialect.do_rollback = execute, commit, roll_back
    try:
        yield
    finally:
        del dialect.do_execute, dialect.do_commit, dialect.do_rollback
