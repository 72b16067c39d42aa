"""The connection to the database, and the transactions everything runs in.

An operation is a function of a :class:`Transaction`; it never commits. :meth:`Store.write` runs one in a transaction
of its own and once more when the database says that another try may work (deadlock, busy file), or when the connection
broke before the commit was asked for. A caller who has a SQLAlchemy connection may run operations in its own
transaction with :meth:`Store.joined`.

Interrupted anywhere before the commit, a transaction leaves nothing; after it, everything. When the connection breaks
in between, nobody knows which: that is said with a code of its own (``COMMIT_UNKNOWN``) and is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from time import perf_counter
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import orjson
import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import Dialect as SQLAlchemyDialect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool, StaticPool

from penstock.clock import Clock, DatabaseClock
from penstock.errors import (
    ConfigurationError,
    PenstockError,
    StatementRefused,
    StoreLocked,
    StoreRefused,
    StoreUnavailable,
)
from penstock.store.callers_connection import require_usable
from penstock.store.checkpoints import Checkpoints
from penstock.store.commit_hooks import call_after_commit
from penstock.store.dialects.contract import NOW, dialect_of
from penstock.store.kept_connections import KeptConnections
from penstock.store.latency import Latency
from penstock.store.notices import stopped
from penstock.store.peers import Peers
from penstock.store.placement import (
    DEFAULT_SCHEMA,
    TablePlacement,
    place_by_what_is_there,
    place_tables,
    placed_copy,
    placement_of,
)
from penstock.store.sqlite_engine import BUSY_SECONDS, is_current, opened_file, sqlite_engine
from penstock.store.statement_cache import Row, Statement, StatementResult, prepared
from penstock.store.write_lock import WriteLock

_log = structlog.get_logger("penstock.jobs")
Result = TypeVar("Result")
Value = TypeVar("Value")
CallersConnection = Connection
"""The connection of a caller who wants something done inside their own transaction."""
Heard = Callable[[frozenset[str] | None], None]
"""Called with notices, or with None when any kind may have work."""
Line = tuple[str, str, dict[str, Any]]
"""A line of the log: what it says, its level, and what belongs to it."""
Observer = Callable[[str, Connection | None], None]
"""Told of what a store is about to do: see :mod:`penstock.store.observation`."""
WRITE_LOCK, BEFORE_COMMIT, AFTER_COMMIT = "write lock", "before COMMIT", "after COMMIT"
_TRIES = 5
LOCK_SECONDS = 1.0
"""How long a statement of a worker waits for a row that somebody has locked, at most."""


class Transaction:
    """One transaction: statements run in it, and what it has to tell the workers."""

    def __init__(self, connection: Connection, store: Store) -> None:
        self.connection = connection
        self.store = store
        self.dialect = store.dialect
        self._compiling = store.dialect_for(connection)
        self._held = store.clock.held()
        self._notices: set[str] = set()
        self.lines: list[Line] = []
        """What the log says of it once it has committed."""

    def log(self, line: str, *, level: str, **fields: Any) -> None:
        """Say this in the log when, and only when, this commits."""
        self.lines.append((line, level, fields))

    def run(self, statement: Statement, parameters: dict[str, Any] | None = None) -> StatementResult:
        """Execute one statement."""
        return prepared(statement, self._compiling).run(self.connection, self._given(parameters))

    def rows(self, statement: Statement, parameters: dict[str, Any]) -> Sequence[tuple[Any, ...]]:
        """What the statement returns, in plain tuples: for answers of thousands of rows."""
        return prepared(statement, self._compiling).rows(self.connection, self._given(parameters))

    def fetch(self, row: type[Row], statement: Statement, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Execute one statement; its columns are the fields of ``row``."""
        return prepared(statement, self._compiling).fetch(self.connection, self._given(parameters), row)

    def values(self, _type: type[Value], statement: Statement, parameters: dict[str, Any] | None = None) -> list[Value]:
        """Execute one statement of one column; the answer is that column."""
        found = prepared(statement, self._compiling).rows(self.connection, self._given(parameters))
        return [value for (value,) in found]

    def execute(self, statement: Statement, parameters: dict[str, Any] | None = None) -> int:
        """Execute one statement; the answer is how many rows it changed."""
        return prepared(statement, self._compiling).execute(self.connection, self._given(parameters))

    def _given(self, parameters: dict[str, Any] | None) -> dict[str, Any]:
        parameters = parameters or {}
        return parameters if self._held is None else {NOW: self._held, **parameters}

    def run_together(self, others: tuple[Any, ...], last: Any, parameters: dict[str, Any]) -> StatementResult:
        """Execute statements that do not need each other's effects; the answer is the last one's."""
        *before, answering = self.dialect.together(others, last)
        for statement in before:
            self.run(statement, parameters)
        return self.run(answering, parameters)

    def take_turns(self, name: str) -> None:
        """Wait until nobody else is between this call of the same name and the end of their transaction."""
        self.dialect.take_turns(self.connection, f"{self.store.placement.channel}: {name}")

    def woke(self, kind: str) -> None:
        """A statement has told the workers of this kind already; this process's own hear of it at the commit."""
        self._notices.add(kind)

    def wake(self, *kinds: str) -> None:
        """There will be work of these kinds once this commits."""
        self._tell(kinds)

    def stop(self, *job_ids: UUID) -> None:
        """The handlers of these jobs need not go on once this commits."""
        self._tell([stopped(one) for one in job_ids])

    def _tell(self, notices: Iterable[str]) -> None:
        fresh = [one for one in notices if one not in self._notices]
        if fresh:
            self._notices.update(fresh)
            self._notify(fresh)

    def _notify(self, notices: Sequence[str]) -> None:
        self.dialect.tell(self.connection, self.store.placement.channel, notices)

    @property
    def notices(self) -> frozenset[str]:
        """What the workers are told when this commits."""
        return frozenset(self._notices)


class Store:
    """One database."""

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self.engine = engine
        self.clock = clock or DatabaseClock()
        self.new_transaction: Callable[[Connection, Store], Transaction] = Transaction
        """Makes each transaction."""
        self.observer: Observer | None = None
        self.dialect = dialect_of(engine.dialect.name, held=self.clock.held() is not None)
        self.peers = Peers.of(engine.url, self.placement.channel)
        self._listeners: list[Heard] = []
        self._away = False
        # SQLite has one writer at a time: they queue here, fairly, instead of in its busy handler's sleeps.
        self._turns = WriteLock.of(engine.url, patience=BUSY_SECONDS) if self.dialect.name == "sqlite" else None
        self._writing: AbstractContextManager[None] = self._turns or nullcontext()
        self._checkpoints = Checkpoints()
        self._kept, self._kept_for_reads = self._connections_to_keep()
        self._passing = KeptConnections(engine, most=0)
        self._passing_for_reads = KeptConnections(engine, most=0, penstock_begins="BEGIN")
        self._dialects: WeakKeyDictionary[SQLAlchemyDialect, SQLAlchemyDialect] = WeakKeyDictionary()
        self.latency = Latency()
        self.slow_query_ms = 500.0
        """Pages that take longer than this are logged."""
        self.lock_seconds = LOCK_SECONDS
        """How long a bounded write waits for a lock."""

    def _connections_to_keep(self) -> tuple[KeptConnections, KeptConnections]:
        """Those for writes, and those for reads of one statement: on a server both are transactions by themselves."""
        size = _pool_size(self.engine)
        if self.dialect.in_our_process:
            most = max(0, size - 2) // 2
            reads = KeptConnections(self.engine, most=most, is_usable=is_current, penstock_begins=None)
            return KeptConnections(self.engine, most=1, is_usable=is_current), reads
        from penstock.store.postgresql_engine import is_usable

        kept = KeptConnections(self.engine, most=size // 2, is_usable=is_usable, isolation_level="AUTOCOMMIT")
        return kept, kept

    @property
    def placement(self) -> TablePlacement:
        """Where our tables are."""
        return placement_of(self.engine.dialect)

    def place(self, placement: TablePlacement) -> None:
        """Our tables are there: decided when a SQLite file is migrated for the first time."""
        if placement != self.placement:
            place_tables(self.engine.dialect, placement)
            # What was compiled until now has other names in it.
            self.engine.clear_compiled_cache()
            self._dialects.clear()
            prepared.cache_clear()

    def dialect_for(self, connection: Connection) -> SQLAlchemyDialect:
        """What statements on this connection are compiled with: it knows where our tables are."""
        dialect = connection.dialect
        if dialect is self.engine.dialect:
            return dialect
        known = self._dialects.get(dialect)
        if known is None:
            known = self._dialects[dialect] = placed_copy(dialect, self.placement)
        return known

    def listen(self, listener: Heard) -> None:
        """Call ``listener`` with the notices of each transaction of this process, once it has committed.

        And with None when the database answers for the first time after it could not be reached.
        """
        self._listeners.append(listener)

    def unlisten(self, listener: Heard) -> None:
        """Do not call ``listener`` any more."""
        self._listeners.remove(listener)

    def write(
        self, operation: Callable[[Transaction], Result], *, at_once: bool = False, bounded: bool = False
    ) -> Result:
        """Run ``operation`` in a transaction of its own.

        ``at_once`` promises that it is a single statement on a database server: that is a transaction by itself, and
        saves the two ways there and back of BEGIN and COMMIT.

        ``bounded`` is for whoever has others to serve: a statement that has waited for a lock for ``lock_seconds`` ends
        the transaction with :class:`StoreLocked`, and nothing has happened. A person's own call waits as long as an
        answer may take.
        """
        at_once, bounded = (asked and not self.dialect.in_our_process for asked in (at_once, bounded))
        # A bounded one says BEGIN itself, on a connection that is otherwise in AUTOCOMMIT.
        keeps = at_once or bounded or self.dialect.in_our_process
        connecting = self._kept.one if keeps else self._passing.one
        for left in reversed(range(_TRIES)):
            committing = at_once
            if self.observer is not None and self._turns is not None:
                self.observer(WRITE_LOCK, None)
            asked = perf_counter()
            try:
                with self._writing, connecting() as connection:
                    with connection.begin():
                        got = perf_counter()
                        if bounded:
                            self.dialect.begin_bounded(connection, self.lock_seconds)
                        transaction = self.new_transaction(connection, self)
                        answer = operation(transaction)
                        if self.observer is not None and not at_once:
                            self.observer(BEFORE_COMMIT, connection)
                        committing = True
                    if self.observer is not None:
                        self.observer(AFTER_COMMIT, connection)
                    if self.dialect.in_our_process:
                        self._shorten_log(connection)
            except DBAPIError as error:
                passing = error.orig is not None and self.dialect.is_passing(error.orig)
                locked = error.orig is not None and self.dialect.is_locked(error.orig)
                if locked and (bounded or not left):
                    raise _locked(error) from error
                if not left or not (passing or self._surely_lost(error, committing)):
                    raise self._failed(error, committing) from error
            except PoolTimeout as error:
                raise _all_busy() from error
            else:
                self.latency.observe(wait=got - asked, whole=perf_counter() - asked)
                self._answered()
                self._announce(transaction.notices, transaction.lines)
                return answer
        raise AssertionError("unreachable: the last try returns or raises")

    def read(self, question: Callable[[Transaction], Result], *, at_once: bool = False) -> Result:
        """Run ``question`` in a transaction that only reads.

        ``at_once`` promises that it is a single statement, which needs no transaction around it.
        """
        for left in reversed(range(_TRIES)):
            try:
                with self._reading(), self._reader(at_once) as connection, connection.begin():
                    answer = question(self.new_transaction(connection, self))
            except DBAPIError as error:
                if not left or not self._surely_lost(error, committing=False):
                    raise self._failed(error, committing=False) from error
            except PoolTimeout as error:
                raise _all_busy() from error
            else:
                self._answered()
                return answer
        raise AssertionError("unreachable: the last try returns or raises")

    def _surely_lost(self, error: DBAPIError, committing: bool) -> bool:
        """Did the connection break without anything having happened? A fresh one may do better.

        Who waited for an answer in vain has waited long enough.
        """
        if not error.connection_invalidated or isinstance(error.orig, TimeoutError):
            return False
        return not committing or self._did_not_happen(error)

    def _did_not_happen(self, error: DBAPIError) -> bool:
        return error.orig is not None and self.dialect.did_not_happen(error.orig)

    def _failed(self, error: DBAPIError, committing: bool) -> PenstockError:
        """What a driver's error means to those who do not know SQL."""
        first_line = str(error.orig).strip().partition("\n")[0]
        fault = None if error.orig is None else self.dialect.fault(error.orig)
        if fault is None and isinstance(error, DataError):
            return StoreRefused(f"the database refused a value: {first_line}")
        is_defect = isinstance(error, IntegrityError | NotSupportedError | ProgrammingError)
        if fault is None and (is_defect or (error.orig is not None and self.dialect.is_defect(error.orig))):
            return StatementRefused(f"the database refused the statement: {first_line}")
        self._away = True
        # A database that says what is wrong with it has refused the commit; one that says nothing leaves it open.
        if fault is None and committing and error.connection_invalidated and not self._did_not_happen(error):
            return StoreUnavailable(
                "the connection broke while the change was being committed, so nobody knows whether it happened: "
                f"look, or ask again with the same idempotency key ({first_line})",
                code="COMMIT_UNKNOWN",
            )
        if isinstance(error.orig, TimeoutError):
            return StoreUnavailable(
                f"the database did not answer within PENSTOCK_DATABASE_TIMEOUT_SECONDS ({first_line})",
                code="DB_TIMEOUT",
            )
        return StoreUnavailable(f"the database is not available: {first_line}", code=fault)

    def _answered(self) -> None:
        """Whoever reaches the database first after it was away wakes those who wait for it."""
        if self._away:
            self._away = False
            for listener in tuple(self._listeners):
                listener(None)

    @contextmanager
    def joined(self, connection: Connection) -> Iterator[Transaction]:
        """Work inside the caller's own transaction: it commits, or nothing happened."""
        require_usable(connection, self.engine)
        if not connection.in_transaction():
            connection.begin()  # as its first statement would
        if self.dialect.is_autocommit(connection):
            raise ConfigurationError(
                "the connection is in AUTOCOMMIT: each statement would be committed by itself, and a job could be seen "
                "before its items; give a connection with a transaction",
                code="CONNECTION_AUTOCOMMIT",
            )
        transaction = self.new_transaction(connection, self)
        yield transaction
        if transaction.notices or transaction.lines:
            call_after_commit(connection, partial(self._announce, transaction.notices, tuple(transaction.lines)))

    def rest(self) -> None:
        """Hand the connections that are kept for the next transaction back to the pool."""
        self._kept_for_reads.close()
        with self._writing:
            self._kept.close()

    def close(self) -> None:
        """Let go of all connections."""
        self.rest()
        self.engine.dispose()
        if self._turns is not None:
            self._turns.close()

    def _announce(self, notices: frozenset[str], lines: Sequence[Line]) -> None:
        for line, level, fields in lines:
            getattr(_log, level)(line, **fields)
        if notices:
            for listener in tuple(self._listeners):
                listener(notices)
            if self.dialect.in_our_process:
                self.peers.tell(notices)

    def _shorten_log(self, connection: Connection) -> None:
        """The writer's last duty in his turn, on SQLite."""
        opened = opened_file(connection)
        if opened is not None:
            driver: Any = connection.connection.driver_connection
            self._checkpoints.run_if_due(opened.path, driver)

    def _reader(self, at_once: bool) -> AbstractContextManager[Connection]:
        if at_once and not isinstance(self.engine.pool, StaticPool):
            return self._kept_for_reads.one()
        return self._passing_for_reads.one()

    def _reading(self) -> AbstractContextManager[None]:
        # An in-memory database is one connection: readers must wait for the writer too.
        return self._writing if isinstance(self.engine.pool, StaticPool) else nullcontext()


def _pool_size(engine: Engine) -> int:
    return engine.pool.size() if isinstance(engine.pool, QueuePool) else 1


def _locked(error: DBAPIError) -> StoreLocked:
    first_line = str(error.orig).strip().partition("\n")[0]
    return StoreLocked(f"somebody's open transaction has a row that is needed: {first_line}")


def _all_busy() -> StoreUnavailable:
    return StoreUnavailable(
        "every connection was in use for too long; ask again, or raise PENSTOCK_POOL_SIZE", code="DB_POOL_BUSY"
    )


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
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        engine = sqlite_engine(parsed, pool_size=pool_size, synchronous=sqlite_synchronous, json=_json())
        place_by_what_is_there(engine)
        return Store(engine, clock)
    dialect_of(parsed.get_backend_name())
    try:
        from penstock.store.postgresql_engine import postgresql_engine

        engine = postgresql_engine(
            parsed,
            pool_size=pool_size,
            timeout=timeout,
            prepared_statements=prepared_statements,
            listen_url=listen_url,
            json=_json(),
        )
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the driver for {parsed.drivername} is not installed ({error}); install penstock[postgres]"
        ) from error
    place_tables(engine.dialect, TablePlacement(schema=schema))
    return Store(engine, clock)


def _json() -> dict[str, Callable[..., Any]]:
    return {"json_serializer": lambda value: orjson.dumps(value).decode(), "json_deserializer": orjson.loads}
