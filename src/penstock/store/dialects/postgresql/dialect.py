"""PostgreSQL: rows are handed in as arrays, workers are woken by NOTIFY."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Float,
    FromClause,
    Insert,
    Select,
    Table,
    any_,
    bindparam,
    case,
    cast,
    column,
    extract,
    false,
    func,
    literal_column,
    select,
    text,
    true,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY, DOUBLE_PRECISION, JSONB, TEXT, VARCHAR, insert
from sqlalchemy.engine import URL
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import Interval, String, Text

from penstock.errors import ConfigurationError
from penstock.store.dialects.dialect import Connections, ConnectOptions, Field, Listener
from penstock.store.kept_connections import KeptConnections
from penstock.store.placement import TablePlacement, place_tables, placement_of
from penstock.store.tables import UNIQUE_NAMES
from penstock.store.types import Moment, Payload
from penstock.store.write_lock import WriteLock

if TYPE_CHECKING:
    from penstock.store.engine import Store
    from penstock.store.peers import Presence

_NOTIFY = text("SELECT pg_notify(:channel, notice) FROM unnest(CAST(:notices AS text[])) AS notice")
_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_SERVER_IN_QUERY = ("host", "hostaddr", "port", "service")
_SERVER_IN_ENVIRONMENT = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE")
_LOCK_NOT_AVAILABLE = "55P03"
_PASSING_STATES = frozenset({"40001", "40P01", _LOCK_NOT_AVAILABLE})
"""Serialization failure, deadlock, lock not available."""
_UNIQUE_VIOLATION = "23505"
# The server ended a session because it was idle, or idle in a transaction: so it was not at work for us.
_IDLE_STATES = frozenset({"57P05", "25P03"})
_FAULTS = {
    "53100": "DATABASE_FULL",
    "25006": "DATABASE_READ_ONLY",
    "58030": "DATABASE_IO_ERROR",
    "57014": "STATEMENT_TIMEOUT",
    "XX001": "DATABASE_CORRUPT",
    "XX002": "DATABASE_CORRUPT",
}


class _Channel(ColumnElement[str]):
    """The channel of the workers of the tables that a statement is compiled for."""

    inherit_cache = True
    type = TEXT()


@compiles(_Channel)
def _write_channel(_element: _Channel, compiler: SQLCompiler, **_options: Any) -> str:
    return f"'{placement_of(compiler.dialect).channel}'"


class PostgreSQL:
    """PostgreSQL's answers to the contract."""

    name = "postgresql"
    is_embedded = False
    commits_single_statements = True
    writes_beside_others = True
    claims_in_one_statement = True
    carries_notices = True
    skips_in_indexes = True
    connection_example = "create_engine('postgresql+psycopg://…')"

    def open_engine(self, url: URL, options: ConnectOptions) -> Engine:
        """In the schema that the operator names."""
        try:
            from penstock.store.dialects.postgresql.engine import postgresql_engine

            engine = postgresql_engine(
                url,
                pool_size=options.pool_size,
                timeout=options.timeout,
                prepared_statements=options.prepared_statements,
                listen_url=options.listen_url,
                json=options.json,
            )
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"the driver for {url.drivername} is not installed ({error}); install penstock[postgres]"
            ) from error
        place_tables(engine.dialect, TablePlacement(schema=options.schema))
        return engine

    def connections(self, engine: Engine) -> Connections:
        """In AUTOCOMMIT: a single statement, read or write, is a transaction by itself."""
        from penstock.store.dialects.postgresql.engine import is_usable

        size = engine.pool.size() if isinstance(engine.pool, QueuePool) else 1
        kept_connections = KeptConnections(
            engine, max_idle=size // 2, is_usable=is_usable, isolation_level="AUTOCOMMIT"
        )
        return Connections(KeptConnections(engine, max_idle=0), kept_connections, kept_connections)

    def write_lock(self, url: URL) -> WriteLock | None:
        """Writers do not wait for each other."""
        return None

    def after_commit(self, connection: Connection) -> None:
        """Nothing to do."""

    def file_of(self, url: URL) -> Path | None:
        """The server's affair."""
        return None

    def identity(self, url: URL) -> str | None:
        """The address it is reached at: in any part of its URL, or in libpq's variables.

        >>> from sqlalchemy.engine import make_url
        >>> PostgreSQL().identity(make_url("postgresql+psycopg:///jobs?host=/run/one&port=5433"))
        'None:None/jobs host=/run/one port=5433'
        """
        if not url.database:
            return None
        address = [f"{url.host}:{url.port}/{url.database}"]
        address += [f"{name}={url.query[name]}" for name in _SERVER_IN_QUERY if name in url.query]
        if url.host is None and "host" not in url.query:
            address += [f"{name}={os.environ[name]}" for name in _SERVER_IN_ENVIRONMENT if name in os.environ]
        return " ".join(address)

    def describe_connection(self, store: Store) -> list[str]:
        """Through a pooler or not, and whether notices are heard."""
        from penstock.store.dialects.postgresql.description import describe_connection

        return describe_connection(store)

    def remarks(self, url: URL) -> list[str]:
        """None so far."""
        return []

    def new_listener(self, store: Store, presence: Presence | None) -> Listener:
        """LISTEN, on one connection of its own."""
        from penstock.store.dialects.postgresql.listener import PostgreSQLListener

        return PostgreSQLListener(store)

    def now(self) -> ColumnElement[datetime]:
        """The start of the statement, which moves on while a transaction waits for a lock."""
        return type_coerce(func.statement_timestamp(), Moment)

    def writing_time(self) -> ColumnElement[datetime]:
        """What the clock says for each row; a statement sees what others commit after it has begun."""
        return type_coerce(func.clock_timestamp(), Moment)

    def later(self, moment: ColumnElement[datetime], seconds: ColumnElement[float]) -> ColumnElement[datetime]:
        """An interval of so many seconds."""
        interval = cast(type_coerce(seconds, Float), DOUBLE_PRECISION) * literal_column("interval '1 second'", Interval)
        return type_coerce(moment + interval, Moment)

    def seconds_between(self, earlier: ColumnElement[datetime], later: ColumnElement[datetime]) -> ColumnElement[float]:
        """An interval's epoch; of a null and a number the larger is the number."""
        seconds = cast(extract("epoch", later - earlier), DOUBLE_PRECISION)
        return func.greatest(seconds, literal_column("0.0", Float))

    def least(self, first: ColumnElement[Any], second: ColumnElement[Any]) -> ColumnElement[Any]:
        """LEAST."""
        return func.least(first, second)

    def greatest(self, first: ColumnElement[Any], second: ColumnElement[Any]) -> ColumnElement[Any]:
        """GREATEST."""
        return func.greatest(first, second)

    def rows(self, name: str, fields: Sequence[Field]) -> FromClause:
        """One array for each column."""
        arrays = [bindparam(f"{name}_{field.name}", type_=ARRAY(_element(field))) for field in fields]
        columns = [column(field.name, field.type) for field in fields]
        return func.unnest(*arrays).table_valued(*columns).render_derived(name=name)

    def parameters(self, name: str, fields: Sequence[Field], values: Sequence[Sequence[object]]) -> dict[str, object]:
        """Rows turned into columns."""
        columns = list(zip(*values, strict=True)) if values else [()] * len(fields)
        return {f"{name}_{field.name}": list(cells) for field, cells in zip(fields, columns, strict=True)}

    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """One array."""
        return column == any_(bindparam(name, type_=ARRAY(column.type)))

    def bundle(self, stretch: Select[Any]) -> Select[Any]:
        """As it is: the server makes the rows while we are busy with others."""
        return stretch

    def unbundle(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """As they are."""
        return rows

    def rows_as_json(self, rows: Select[Any]) -> ColumnElement[Any]:
        """jsonb_agg."""
        some = rows.subquery("some")
        return type_coerce(select(func.jsonb_agg(func.jsonb_build_array(*some.c))).scalar_subquery(), Payload)

    def json(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        """Text becomes jsonb."""
        return cast(text, JSONB)

    def check(self, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        """Before a table is analyzed the planner takes every equation for a rare one; of a CASE it expects a half."""
        return case((condition, true()), else_=false())

    def insert_unless_taken(self, table: Table) -> Insert:
        """ON CONFLICT DO NOTHING."""
        return insert(table).on_conflict_do_nothing()

    def together(self, others: tuple[Any, ...], last: Any) -> tuple[Any, ...]:
        """One statement, with the others as its common table expressions."""
        return _join_as_ctes(others, last)

    def notice(self, kind: ColumnElement[str]) -> ColumnElement[Any]:
        """NOTIFY, delivered when the transaction commits."""
        return cast(func.pg_notify(_Channel(), kind), TEXT)

    def begin_bounded(self, connection: Connection, seconds: float) -> None:
        """Both in one message; LOCAL, because the session may be somebody else's after this transaction."""
        connection.exec_driver_sql(f"BEGIN; SET LOCAL lock_timeout = {max(1, round(seconds * 1000))}")

    def take_turns(self, connection: Connection, name: str) -> None:
        """An advisory lock that the end of the transaction releases."""
        connection.execute(_TURN, {"name": name})

    def tell(self, connection: Connection, channel: str, notices: Sequence[str]) -> None:
        """Delivered when the transaction commits, and not at all when it does not."""
        connection.execute(_NOTIFY, {"channel": channel, "notices": list(notices)})

    def is_autocommit(self, connection: Connection) -> bool:
        """The driver knows."""
        return bool(getattr(connection.connection.dbapi_connection, "autocommit", False))

    def is_passing(self, error: BaseException) -> bool:
        """A deadlock, a serialization failure, a lock that could not be had in time, or a key of ours taken just now.

        The next try finds the row that has the key, and is answered with it. A caller's own keys are the caller's.
        """
        state = getattr(error, "sqlstate", None)
        if state == _UNIQUE_VIOLATION:
            return getattr(getattr(error, "diag", None), "constraint_name", None) in UNIQUE_NAMES
        return state in _PASSING_STATES

    def is_locked(self, error: BaseException) -> bool:
        """By PostgreSQL's own state."""
        return getattr(error, "sqlstate", None) == _LOCK_NOT_AVAILABLE

    def fault(self, error: BaseException) -> str | None:
        """By PostgreSQL's own state."""
        return _FAULTS.get(getattr(error, "sqlstate", None) or "")

    def is_defect(self, error: BaseException) -> bool:
        """The driver's ProgrammingError says it all."""
        return False

    def did_not_happen(self, error: BaseException) -> bool:
        """A server's reason for ending an idle session; the driver's "connection lost" hides it."""
        cause: BaseException | None = error
        while cause is not None:
            if getattr(cause, "sqlstate", None) in _IDLE_STATES:
                return True
            cause = cause.__cause__ or cause.__context__
        return False


@cache
def _join_as_ctes(others: tuple[Any, ...], last: Any) -> tuple[Any, ...]:
    return (last.add_cte(*(statement.cte(f"also_{number}") for number, statement in enumerate(others))),)


def _element(field: Field) -> Any:
    """Texts of any length travel as text."""
    if isinstance(field.type, Text | String | VARCHAR):
        return TEXT()
    return field.type
