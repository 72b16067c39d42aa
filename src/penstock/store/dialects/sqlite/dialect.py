"""SQLite: one writer at a time, rows are handed in as one JSON text."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import accumulate, count
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Engine,
    Float,
    FromClause,
    Insert,
    Integer,
    LargeBinary,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    select,
    type_coerce,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL
from sqlalchemy.engine import Dialect as SQLAlchemyDialect
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql.elements import UnaryExpression
from sqlalchemy.sql.operators import custom_op
from sqlalchemy.types import TypeDecorator, TypeEngine

from penstock.store.dialects.dialect import Connections, ConnectOptions, Field, Listener
from penstock.store.dialects.sqlite.engine import (
    BUSY_SECONDS,
    is_current,
    primary_code,
    reset_race,
    shorten_log,
    sqlite_engine,
)
from penstock.store.dialects.sqlite.watcher import FileWatcher
from penstock.store.dialects.stored_types import microseconds
from penstock.store.kept_connections import KeptConnections
from penstock.store.placement import place_by_what_is_there
from penstock.store.types import Identifier, Moment, Payload, PayloadType
from penstock.store.write_lock import WriteLock

if TYPE_CHECKING:
    from penstock.store.engine import Store
    from penstock.store.peers import Presence


class JsonArray(TypeDecorator[list[Any]]):
    """A list of values on its way in, as one JSON text."""

    impl = Text
    cache_ok = True

    def __init__(self, element: TypeEngine[Any]) -> None:
        super().__init__()
        self.element = type(element)

    def process_bind_param(self, value: Sequence[Any] | None, dialect: SQLAlchemyDialect) -> str:
        """Translated like every value that travels as JSON."""
        translate = _TRANSLATIONS.get(self.element)
        values = value or ()
        return orjson.dumps([translate(element) for element in values] if translate else list(values)).decode()


class SQLite:
    """SQLite's answers to the contract."""

    name = "sqlite"
    is_embedded = True
    commits_single_statements = False
    writes_beside_others = False
    claims_in_one_statement = False
    carries_notices = False
    skips_in_indexes = False
    connection_example = (
        "create_engine('sqlite:///…'), which uses the standard library's sqlite3: a second SQLite library in one "
        "process drops the locks of the first"
    )

    def open_engine(self, url: URL, options: ConnectOptions) -> Engine:
        """Where its tables are is seen in the file."""
        engine = sqlite_engine(url, pool_size=options.pool_size, synchronous=options.synchronous, json=options.json)
        place_by_what_is_there(engine)
        return engine

    def connections(self, engine: Engine) -> Connections:
        """The writer keeps his; those who read a single statement need no transaction around it."""
        size = engine.pool.size() if isinstance(engine.pool, QueuePool) else 1
        writer = KeptConnections(engine, max_idle=1, is_usable=is_current)
        reads = KeptConnections(engine, max_idle=max(0, size - 2) // 2, is_usable=is_current, penstock_begins=None)
        return Connections(writer, writer, reads)

    def write_lock(self, url: URL) -> WriteLock | None:
        """They queue there, fairly, instead of in SQLite's busy handler's sleeps."""
        return WriteLock.of(url, patience=BUSY_SECONDS)

    def after_commit(self, connection: Connection) -> None:
        """Shorten the write-ahead log."""
        shorten_log(connection)

    def file_of(self, url: URL) -> Path | None:
        """The path in its URL."""
        return None if url.database in (None, "", ":memory:") else Path(str(url.database))

    def identity(self, url: URL) -> str | None:
        """Where the file is."""
        path = self.file_of(url)
        return None if path is None else str(path.resolve())

    def describe_connection(self, store: Store) -> list[str]:
        """There is nothing between us and the file."""
        return []

    def remarks(self, url: URL) -> list[str]:
        """Versions that can corrupt a file which others write to."""
        race = None if self.file_of(url) is None else reset_race()
        return [] if race is None else [race]

    def new_listener(self, store: Store, presence: Presence | None) -> Listener:
        """It cannot tell: the file is looked at."""
        return FileWatcher(store, presence)

    def now(self) -> ColumnElement[datetime]:
        """Milliseconds are what SQLite's clock has; julianday is in every version."""
        return literal_column("CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000", Moment)

    def writing_time(self) -> ColumnElement[datetime]:
        """The same: who writes has the lock before the statement begins."""
        return self.now()

    def later(self, moment: ColumnElement[datetime], seconds: ColumnElement[float]) -> ColumnElement[datetime]:
        """Moments are microseconds here."""
        microseconds = cast(type_coerce(seconds, Float) * 1_000_000.0, Integer)
        # Not type_coerce(moment, Integer): that would take a held moment's parameter its way of becoming a number.
        return type_coerce(moment.op("+")(microseconds), Moment)

    def seconds_between(self, earlier: ColumnElement[datetime], later: ColumnElement[datetime]) -> ColumnElement[float]:
        """Moments are microseconds here."""
        microseconds = func.max(func.coalesce(later.op("-")(earlier), literal_column("0")), literal_column("0"))
        return microseconds.op("/", return_type=Float())(literal_column("1000000.0"))

    def least(self, first: ColumnElement[Any], second: ColumnElement[Any]) -> ColumnElement[Any]:
        """min, which of two arguments is no aggregate."""
        return func.min(first, second)

    def greatest(self, first: ColumnElement[Any], second: ColumnElement[Any]) -> ColumnElement[Any]:
        """Max."""
        return func.max(first, second)

    def rows(self, name: str, fields: Sequence[Field]) -> FromClause:
        """One JSON array of arrays, taken apart by json_each; a long text is cut out of all of them in one piece."""
        each = func.json_each(bindparam(name, type_=Text)).table_valued("value", name=f"{name}_each")
        cells = (each.c.value.op("->>")(literal_column(str(index))) for index in count())
        columns = []
        for field in fields:
            cell: ColumnElement[Any] = next(cells)
            if field.long:
                # Of bytes, that is: to find the thousandth character of a text, SQLite would count from its beginning.
                cell = cast(func.substr(bindparam(f"{name}_texts", type_=LargeBinary), cell, next(cells)), Text)
            columns.append(type_coerce(cell, field.type).label(field.name))
        return select(*columns).subquery(name)

    def parameters(self, name: str, fields: Sequence[Field], values: Sequence[Sequence[object]]) -> dict[str, object]:
        """Identifiers go as the 32 digits SQLAlchemy keeps, moments as microseconds.

        Long texts go as they are, one behind the other, and the rows say where each begins and how long it is: within
        JSON they would have to be escaped here, and read three times there.
        """
        columns: list[Iterable[object]] = []
        texts: list[bytes] = []
        parameters: dict[str, object] = {}
        begin = 1
        value_columns = zip(*values, strict=True) if values else [()] * len(fields)
        for field, column in zip(fields, value_columns, strict=True):
            translate = _TRANSLATIONS.get(type(field.type))
            if field.long:
                pieces = [None if value is None else str(value).encode() for value in column]
                lengths = [None if value is None else len(value) for value in pieces]
                *begins, begin = accumulate([value or 0 for value in lengths], initial=begin)
                columns += [begins, lengths]
                texts += filter(None, pieces)
                parameters[f"{name}_texts"] = b"".join(texts)
            elif translate is not None:
                columns.append([None if value is None else translate(value) for value in column])
            else:
                columns.append(column)
        return parameters | {name: orjson.dumps(list(zip(*columns, strict=True))).decode()}

    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """One JSON array."""
        each = func.json_each(bindparam(name, type_=JsonArray(column.type))).table_valued("value", name=f"{name}_each")
        return column.in_(select(type_coerce(each.c.value, column.type)))

    def bundle(self, stretch: Select[Any]) -> Select[Any]:
        """One JSON array of all rows, made in one step.

        A step for each row would need the interpreter after each; this one leaves it to whoever writes the rows before.
        """
        some = stretch.subquery("stretch")
        cells = (func.json(column) if isinstance(column.type, PayloadType) else column for column in some.c)
        return select(type_coerce(func.json_group_array(func.json_array(*cells)), Payload))

    def unbundle(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """The rows in the array."""
        [[bundle]] = rows
        return list(bundle)

    def rows_as_json(self, rows: Select[Any]) -> ColumnElement[Any]:
        """json_group_array."""
        some = rows.subquery("some")
        return type_coerce(select(func.json_group_array(func.json_array(*some.c))).scalar_subquery(), Payload)

    def json(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        """JSON is text here."""
        return text

    def check(self, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        """Without statistics SQLite would rather search by state than by the ids it is given; a plus sign stops it."""
        return UnaryExpression(condition.self_group(), operator=custom_op("+"), type_=Boolean())

    def insert_unless_taken(self, table: Table) -> Insert:
        """ON CONFLICT DO NOTHING."""
        return insert(table).on_conflict_do_nothing()

    def together(self, others: tuple[Any, ...], last: Any) -> tuple[Any, ...]:
        """One after the other: there are no round trips to save."""
        return (*others, last)

    def notice(self, kind: ColumnElement[str]) -> ColumnElement[Any]:
        """Nothing to send."""
        return null()

    def begin_bounded(self, connection: Connection, seconds: float) -> None:
        """Nothing to do: there are no locks on rows, and who waits to write is bounded already."""

    def take_turns(self, connection: Connection, name: str) -> None:
        """Nothing to do: there is one writer at a time."""

    def tell(self, connection: Connection, channel: str, notices: Sequence[str]) -> None:
        """Not by the database: the store itself tells its process and its peers."""

    def is_autocommit(self, connection: Connection) -> bool:
        """Without an isolation level the driver begins nothing by itself; then somebody must have said BEGIN."""
        driver: Any = connection.connection.dbapi_connection
        return driver.isolation_level is None and not driver.in_transaction

    def is_passing(self, error: BaseException) -> bool:
        """Another process held the file longer than we wait."""
        return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def is_locked(self, error: BaseException) -> bool:
        """There are no locks on rows."""
        return False

    def fault(self, error: BaseException) -> str | None:
        """By SQLite's own code."""
        return _FAULTS.get(primary_code(error) or 0)

    def is_defect(self, error: BaseException) -> bool:
        """A table that is not there, or SQL that cannot be read: an OperationalError like those that pass."""
        return primary_code(error) == sqlite3.SQLITE_ERROR

    def did_not_happen(self, error: BaseException) -> bool:
        """There is no connection to be lost."""
        return False


_FAULTS = {
    sqlite3.SQLITE_FULL: "DATABASE_FULL",
    sqlite3.SQLITE_READONLY: "DATABASE_READ_ONLY",
    sqlite3.SQLITE_IOERR: "DATABASE_IO_ERROR",
    sqlite3.SQLITE_CORRUPT: "DATABASE_CORRUPT",
    sqlite3.SQLITE_NOTADB: "DATABASE_CORRUPT",
}
_TRANSLATIONS: dict[type[Any], Callable[[Any], object]] = {Identifier: attrgetter("hex"), Moment: microseconds}
"""How values travel as JSON: identifiers as the 32 digits that are kept, moments as microseconds."""
