"""The connection to the database, and the transactions everything runs in.

An operation is a function of a :class:`Transaction`; it never commits. :meth:`Store.write` runs one in a transaction
of its own and once more when the database says that another try may work (deadlock, busy file), or when the connection
broke before the commit was asked for. A caller who has a SQLAlchemy connection, or a session, may run operations in
its own transaction with :meth:`Store.use_connection`.

Interrupted anywhere before the commit, a transaction leaves nothing; after it, everything. When the connection breaks
in between, nobody knows which: that is said with a code of its own (``COMMIT_UNKNOWN``) and is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import orjson
import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import Dialect as SQLAlchemyDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import StaticPool

from penstock.clock import Clock, DatabaseClock
from penstock.errors import ConfigurationError, PenstockError, StoreUnavailable
from penstock.store.callers_connection import CallersConnection, find_connection
from penstock.store.commit_hooks import call_after_commit
from penstock.store.dialects.dialect import ConnectOptions, dialect_of, parse_url
from penstock.store.driver_errors import is_surely_lost, pool_is_busy, translate, translate_lock
from penstock.store.kept_connections import KeptConnections
from penstock.store.latency import Latency
from penstock.store.peers import Peers
from penstock.store.placement import (
    DEFAULT_SCHEMA,
    TablePlacement,
    place_tables,
    placed_copy,
    placement_of,
)
from penstock.store.statement_cache import prepare
from penstock.store.transaction import Line, Transaction

_log = structlog.get_logger("penstock.jobs")
Result = TypeVar("Result")
DatabaseConnection = Connection
"""A SQLAlchemy connection, in one of our transactions."""
OnNotices = Callable[[frozenset[str] | None], None]
"""Called with notices, or with None when any kind may have work."""
Observer = Callable[[str, Connection | None], None]
"""Told of what a store is about to do: see :mod:`penstock.store.observation`."""
WRITE_LOCK, BEFORE_COMMIT, AFTER_COMMIT = "write lock", "before COMMIT", "after COMMIT"
_TRIES = 5
LOCK_SECONDS = 1.0
"""The longest that a worker's statement waits for a locked row."""


class Store:
    """One database."""

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self.engine = engine
        self.clock = clock or DatabaseClock()
        self.new_transaction: Callable[[Connection, Store, bool], Transaction] = Transaction
        """Makes each transaction; the last says whether a single statement is promised."""
        self.observer: Observer | None = None
        self.dialect = dialect_of(engine.dialect.name, has_manual_clock=self.clock.held() is not None)
        self.peers = Peers.of(engine.url, self.placement.channel)
        self._listeners: list[OnNotices] = []
        self._away = False
        self._queue = self.dialect.write_lock(engine.url)
        self.write_lock: AbstractContextManager[None] = self._queue or nullcontext()
        """Held by the writer, where there is one at a time."""
        self._connections = self.dialect.connections(engine)
        self._passing_for_reads = KeptConnections(engine, max_idle=0, penstock_begins="BEGIN")
        self._dialects: WeakKeyDictionary[SQLAlchemyDialect, SQLAlchemyDialect] = WeakKeyDictionary()
        self.latency = Latency()
        self.slow_query_ms = 500.0
        self.item_summary: Callable[[], tuple[tuple[str, tuple[str, ...]], ...]] = tuple
        """What the kinds say tells their items apart: its name, and the members of an input that may hold it."""
        """Pages that take longer than this are logged."""
        self.lock_seconds = LOCK_SECONDS
        """How long a bounded write waits for a lock."""

    def current_time(self) -> datetime:
        """The time by this machine's clock, or by the one a test holds: to say how long ago something was."""
        return self.clock.held() or datetime.now(UTC)

    @property
    def placement(self) -> TablePlacement:
        """Where our tables are."""
        return placement_of(self.engine.dialect)

    @property
    def is_in_memory(self) -> bool:
        """Is it one connection's memory? No other process sees it, and readers wait for the writer too."""
        return isinstance(self.engine.pool, StaticPool)

    def place(self, placement: TablePlacement) -> None:
        """Our tables are there: decided when a SQLite file is migrated for the first time."""
        if placement != self.placement:
            place_tables(self.engine.dialect, placement)
            # What was compiled until now has other names in it.
            self.engine.clear_compiled_cache()
            self._dialects.clear()
            prepare.cache_clear()

    def dialect_for(self, connection: Connection) -> SQLAlchemyDialect:
        """What statements on this connection are compiled with: it knows where our tables are."""
        dialect = connection.dialect
        if dialect is self.engine.dialect:
            return dialect
        placed_dialect = self._dialects.get(dialect)
        if placed_dialect is None:
            placed_dialect = self._dialects[dialect] = placed_copy(dialect, self.placement)
        return placed_dialect

    def transaction_on_tables_at(self, connection: Connection, placement: TablePlacement) -> Transaction:
        """The transaction that is open on a connection, for queries of tables of ours that lie elsewhere."""
        return Transaction(connection, self, compiled_with=placed_copy(connection.dialect, placement))

    def listen(self, listener: OnNotices) -> None:
        """Call ``listener`` with the notices of each transaction of this process, once it has committed.

        And with None when the database answers for the first time after it could not be reached.
        """
        self._listeners.append(listener)

    def unlisten(self, listener: OnNotices) -> None:
        """Do not call ``listener`` any more."""
        self._listeners.remove(listener)

    def write(
        self, operation: Callable[[Transaction], Result], *, single_statement: bool = False, bounded: bool = False
    ) -> Result:
        """Run ``operation`` in a transaction of its own.

        ``single_statement`` promises that it is one on a database server: that is a transaction by itself, and saves
        the two ways there and back of BEGIN and COMMIT. Whoever looks on (:mod:`penstock.store.observation`) sees to
        it that the promise is kept.

        ``bounded`` is for whoever has others to serve: a statement that has waited for a lock for ``lock_seconds`` ends
        the transaction with :class:`StoreLocked`, and nothing has happened. A person's own call waits as long as an
        answer may take.
        """
        connections = self._connections.short_writes if single_statement or bounded else self._connections.writes
        single_statement = single_statement and self.dialect.commits_single_statements
        for tries_left in reversed(range(_TRIES)):
            committing = single_statement
            if self.observer is not None and self._queue is not None:
                self.observer(WRITE_LOCK, None)
            began_at = perf_counter()
            try:
                with self.write_lock, connections.lend() as connection:
                    with connection.begin():
                        connected_at = perf_counter()
                        if bounded:
                            self.dialect.begin_bounded(connection, self.lock_seconds)
                        transaction = self.new_transaction(connection, self, single_statement)
                        answer = operation(transaction)
                        if self.observer is not None and not single_statement:
                            self.observer(BEFORE_COMMIT, connection)
                        committing = True
                    if self.observer is not None:
                        self.observer(AFTER_COMMIT, connection)
                    self.dialect.after_commit(connection)
            except DBAPIError as error:
                passing = error.orig is not None and self.dialect.is_passing(error.orig)
                is_locked = error.orig is not None and self.dialect.is_locked(error.orig)
                if is_locked and (bounded or not tries_left):
                    raise translate_lock(error) from error
                if not tries_left or not (passing or is_surely_lost(error, self.dialect, committing=committing)):
                    raise self._translate(error, committing=committing) from error
            except PoolTimeout as error:
                raise pool_is_busy() from error
            else:
                self.latency.observe(wait=connected_at - began_at, whole=perf_counter() - began_at)
                self._note_answer()
                self._announce(transaction.notices, transaction.lines)
                return answer
        raise AssertionError("unreachable: the last try returns or raises")

    def read(self, question: Callable[[Transaction], Result], *, single_statement: bool = False) -> Result:
        """Run ``question`` in a transaction that only reads.

        ``single_statement`` promises that it is one, which needs no transaction around it.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._reading(), self._reader(single_statement) as connection, connection.begin():
                    answer = question(self.new_transaction(connection, self, single_statement))
            except DBAPIError as error:
                if not tries_left or not is_surely_lost(error, self.dialect, committing=False):
                    raise self._translate(error, committing=False) from error
            except PoolTimeout as error:
                raise pool_is_busy() from error
            else:
                self._note_answer()
                return answer
        raise AssertionError("unreachable: the last try returns or raises")

    def _translate(self, error: DBAPIError, *, committing: bool) -> PenstockError:
        failure = translate(error, self.dialect, committing=committing)
        self._away = self._away or isinstance(failure, StoreUnavailable)
        return failure

    def _note_answer(self) -> None:
        """The first caller that reaches the database after an outage wakes those who wait for it."""
        if self._away:
            self._away = False
            for listener in tuple(self._listeners):
                listener(None)

    @contextmanager
    def use_connection(self, callers_connection: CallersConnection) -> Iterator[Transaction]:
        """Work inside the caller's own transaction: it commits, or nothing happened."""
        connection = find_connection(callers_connection, self.engine, self.dialect)
        if not connection.in_transaction():
            connection.begin()  # as its first statement would
        if self.dialect.is_autocommit(connection):
            raise ConfigurationError(
                "the connection is in AUTOCOMMIT: each statement would be committed by itself, and a job could be seen "
                "before its items; give a connection with a transaction",
                code="CONNECTION_AUTOCOMMIT",
            )
        transaction = self.new_transaction(connection, self, False)
        yield transaction
        if transaction.notices or transaction.lines:
            call_after_commit(connection, partial(self._announce, transaction.notices, tuple(transaction.lines)))

    def rest(self) -> None:
        """Close what is kept for the next transaction and hand it back to the pool; the next one opens it again."""
        self._connections.reads.close()
        with self.write_lock:
            self._connections.writes.close()
            self._connections.short_writes.close()
        if self._queue is not None:
            self._queue.close()

    def close(self) -> None:
        """Close all connections."""
        self.rest()
        self.engine.dispose()

    def _announce(self, notices: frozenset[str], lines: Sequence[Line]) -> None:
        for line, level, fields in lines:
            getattr(_log, level)(line, **fields)
        if notices:
            for listener in tuple(self._listeners):
                listener(notices)
            if not self.dialect.carries_notices:
                self.peers.tell(notices)

    def _reader(self, single_statement: bool) -> AbstractContextManager[Connection]:
        if single_statement and not self.is_in_memory:
            return self._connections.reads.lend()
        return self._passing_for_reads.lend()

    def _reading(self) -> AbstractContextManager[None]:
        return self.write_lock if self.is_in_memory else nullcontext()


def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    pool_size: int = 10,
    sqlite_synchronous: str = "NORMAL",
    schema: str = DEFAULT_SCHEMA,
    timeout: float | None = 30.0,
    prepared_statements: str = "auto",
    listen_url: str | None = None,
) -> Store:
    """Connect to the database that ``url`` names; the last four are for a server's.

    Our tables are in ``schema``. A statement is answered within ``timeout`` seconds; None waits as long as it takes.
    """
    parsed_url = parse_url(url)
    options = ConnectOptions(
        pool_size=pool_size,
        synchronous=sqlite_synchronous,
        schema=schema,
        timeout=timeout,
        prepared_statements=prepared_statements,
        listen_url=listen_url,
        json={"json_serializer": _write_json, "json_deserializer": orjson.loads},
    )
    return Store(dialect_of(parsed_url.get_backend_name()).open_engine(parsed_url, options), clock)


def _write_json(value: Any) -> str:
    return orjson.dumps(value).decode()
