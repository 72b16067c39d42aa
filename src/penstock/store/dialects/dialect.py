"""What differs between databases; everything else is the same SQL everywhere.

The list is closed on purpose: what needs another difference gets a method or a question here, never an ``if`` of its
own elsewhere (``tests/architecture/test_dialects.py`` looks for them). docs/explanation/dialects.md says what a new
database has to bring. Where the two that there are agree and a third will not, the difference goes behind:

- *no UPDATE … RETURNING* (MariaDB, MySQL): the guarded changes of states, claims and the outbox read the rows that they
  changed. They are built with ``returning``, and executed by ``PreparedStatement.fetch`` of
  ``store/statement_cache.py``: there such a database would lock the rows by a SELECT … FOR UPDATE, update them, and
  answer with what it had locked.
- *no statement within a statement* (data-modifying common table expressions): :meth:`Dialect.together` gives them one
  after the other, and :attr:`Dialect.claims_in_one_statement` is False.
- *no partial indexes*: :func:`penstock.store.dialects.partial_index.only_where` says what an index covers; a database
  without them gets a generated column that is null where the condition does not hold, and an index with that.
- *no arrays and no json_each*: :meth:`Dialect.rows` and :meth:`Dialect.among` (MariaDB has JSON_TABLE).
- *no NOTIFY*: :attr:`Dialect.carries_notices` is False, and :meth:`Dialect.new_listener` watches something else.
- *no schemas of one's own within a database*: a placement with a prefix, as SQLite has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sqlalchemy import Column, ColumnElement, Connection, Engine, FromClause, Insert, Select, Table, bindparam
from sqlalchemy.engine import URL, make_url
from sqlalchemy.types import TypeEngine

from penstock.errors import ConfigurationError
from penstock.store.types import Moment

if TYPE_CHECKING:
    from penstock.store.engine import Store
    from penstock.store.kept_connections import KeptConnections
    from penstock.store.peers import Presence
    from penstock.store.write_lock import WriteLock

NOW = "now"
"""The parameter that gives every statement the time of a manual clock."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of rows handed to a statement."""

    name: str
    type: TypeEngine[Any]
    long: bool = False
    """Does it hold texts of hundreds of characters, in thousands of rows?"""


def fields(*columns: Column[Any] | Field) -> tuple[Field, ...]:
    """Fields named and typed like the given columns."""
    return tuple(column if isinstance(column, Field) else Field(column.name, column.type) for column in columns)


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """How to connect to a database; each dialect takes what it understands."""

    pool_size: int
    synchronous: str
    """SQLite's."""
    schema: str
    """Where our tables are on a server."""
    timeout: float | None
    """A server answers a statement within so many seconds; None waits as long as it takes."""
    prepared_statements: str
    listen_url: str | None
    json: dict[str, Callable[..., Any]]
    """How SQLAlchemy is to write and read JSON."""


class Connections(NamedTuple):
    """The connections that a store keeps for the next transaction, by what for."""

    writes: KeptConnections
    short_writes: KeptConnections
    """For a single statement, or a transaction that says BEGIN itself."""
    reads: KeptConnections
    """For reads of a single statement."""


class CannotListen(Exception):
    """Notices cannot reach us here, and retrying will not help; the message says what will."""


class Listener(Protocol):
    """Listens for what other processes commit, on a connection of its own."""

    def listen(self, on_ready: Callable[[], None], on_notices: Callable[[frozenset[str] | None], None]) -> None:
        """Call ``on_ready`` once it listens, and ``on_notices`` with what arrives; None: anything may have happened."""

    def close(self) -> None:
        """End it, from another thread."""


class Dialect(Protocol):
    """What one database does differently. Statements are built once for each, so it must be hashable."""

    name: str

    # What it is like ----------------------------------------------------------------------------------------------

    is_embedded: bool
    """Is it a file of ours: made when it is first used, brought up to date by whoever opens it, in one transaction?"""
    commits_single_statements: bool
    """Is a statement a transaction by itself, so that no round trips for BEGIN and COMMIT are needed?"""
    writes_beside_others: bool
    """Can we write while another of our transactions does, so that a lane claims while it records?"""
    claims_in_one_statement: bool
    """Can one statement lock jobs, take their items and write the history, and is it worth to begin at watermarks?"""
    carries_notices: bool
    """Does it deliver a transaction's notices to other processes? Otherwise the store does, on this machine."""
    skips_in_indexes: bool
    """Does it skip from one priority to the next in an index when a condition does not name any?"""
    connection_example: str
    """How a caller makes a connection in whose transactions we can work."""

    # Connecting ---------------------------------------------------------------------------------------------------

    def open_engine(self, url: URL, options: ConnectOptions) -> Engine:
        """An engine whose connections are set up as the store needs them, and that knows where our tables are."""

    def connections(self, engine: Engine) -> Connections:
        """Those that are kept; at most half of the pool, so that no caller waits for an idle one."""

    def write_lock(self, url: URL) -> WriteLock | None:
        """Where writers queue, for a database that has one at a time."""

    def after_commit(self, connection: Connection) -> None:
        """What a writer does after its commit, while it still has the connection."""

    def file_of(self, url: URL) -> Path | None:
        """The file of an embedded database; None for a server's, and for one in memory."""

    def identity(self, url: URL) -> str | None:
        """What programs that use the same database agree on; None for one that nobody else can use."""

    def describe_connection(self, store: Store) -> list[str]:
        """How a server is reached, in words for whoever set it up; nothing for an embedded database."""

    def remarks(self, url: URL) -> list[str]:
        """What an operator should know about this database, though it works."""

    def is_autocommit(self, connection: Connection) -> bool:
        """Does the driver commit each statement by itself, although a transaction was begun?"""

    # Notifying ----------------------------------------------------------------------------------------------------

    def notice(self, kind: ColumnElement[str]) -> ColumnElement[Any]:
        """What wakes workers of a kind when a row that returns it is written, where a statement can."""

    def tell(self, connection: Connection, channel: str, notices: Sequence[str]) -> None:
        """Tell listening workers when this transaction commits."""

    def new_listener(self, store: Store, presence: Presence | None) -> Listener:
        """What hears of the commits of others; ``presence`` is the worker's own socket, if it has one."""

    # Locks --------------------------------------------------------------------------------------------------------

    def begin_bounded(self, connection: Connection, seconds: float) -> None:
        """Begin a transaction whose statements wait for a lock no longer than this; in one round trip."""

    def take_turns(self, connection: Connection, name: str) -> None:
        """Wait until nobody else is between this call of the same name and the end of their transaction."""

    # Statements ---------------------------------------------------------------------------------------------------

    def now(self) -> ColumnElement[datetime]:
        """The database's clock, the same throughout one statement."""

    def writing_time(self) -> ColumnElement[datetime]:
        """The database's clock when a row is written: later than any commit that the statement has waited for."""

    def later(self, moment: ColumnElement[datetime], seconds: ColumnElement[float]) -> ColumnElement[datetime]:
        """``moment`` plus ``seconds``; null when the seconds are null."""

    def seconds_between(self, earlier: ColumnElement[datetime], later: ColumnElement[datetime]) -> ColumnElement[float]:
        """How long it is from one moment to another; 0 where the clock was set back in between, or one is null."""

    def least(self, first: ColumnElement[Any], second: ColumnElement[Any]) -> ColumnElement[Any]:
        """The smaller of two numbers."""

    def greatest(self, first: ColumnElement[Any], second: ColumnElement[Any]) -> ColumnElement[Any]:
        """The larger of two numbers."""

    def rows(self, name: str, fields: Sequence[Field]) -> FromClause:
        """Rows handed in as parameters, to select from or join with."""

    def parameters(self, name: str, fields: Sequence[Field], values: Sequence[Sequence[object]]) -> dict[str, object]:
        """The parameters that fill :meth:`rows`."""

    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """Is the column one of the values listed in the parameter ``name``? The same statement for any number."""

    def bundle(self, stretch: Select[Any]) -> Select[Any]:
        """The statement as it brings thousands of rows most cheaply."""

    def unbundle(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """The rows that :meth:`bundle` brought."""

    def rows_as_json(self, rows: Select[Any]) -> ColumnElement[Any]:
        """A few rows as one JSON array of arrays, for a column of another statement; null for none."""

    def json(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        """Encoded JSON text as the value of a JSON column."""

    def check(self, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        """A condition on rows found by their key: to be checked, never searched by, nor thought selective."""

    def insert_unless_taken(self, table: Table) -> Insert:
        """An INSERT that does nothing, instead of failing, where a unique index already has the row."""

    def together(self, others: tuple[Any, ...], last: Any) -> tuple[Any, ...]:
        """Statements that do not need each other's effects, as few as the database can take them; the last answers."""

    # Errors -------------------------------------------------------------------------------------------------------

    def is_passing(self, error: BaseException) -> bool:
        """May the same transaction succeed if it is run again (deadlock, busy)?"""

    def is_locked(self, error: BaseException) -> bool:
        """Was a lock waited for as long as the transaction allows?"""

    def fault(self, error: BaseException) -> str | None:
        """The code for what is wrong with the database itself (a full disk), where that is what the error says."""

    def is_defect(self, error: BaseException) -> bool:
        """Is the statement itself wrong, where the driver's class of error does not say so?"""

    def did_not_happen(self, error: BaseException) -> bool:
        """Does the error of a lost connection say that the server had not begun with what was asked?"""


class ManualClockDialect:
    """The same dialect with the time as a parameter: for tests that move the clock."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def now(self) -> ColumnElement[datetime]:
        """The moment the test has set, handed in with each statement."""
        return bindparam(NOW, type_=Moment)

    def writing_time(self) -> ColumnElement[datetime]:
        """The same moment."""
        return self.now()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)


def parse_url(url: str) -> URL:
    """The parts of an address; ``postgres://``, as many hosts write it, is PostgreSQL too.

    >>> parse_url("postgres://ada@db.example/jobs").drivername
    'postgresql'
    """
    parsed_url = make_url(url)
    name, plus, driver = parsed_url.drivername.partition("+")
    return parsed_url.set(drivername=f"postgresql{plus}{driver}") if name == "postgres" else parsed_url


@cache
def dialect_of(dialect_name: str, *, has_manual_clock: bool = False) -> Dialect:
    """The dialect of the named database; one object for each, so that statements built for it are built once."""
    from penstock.store.dialects.postgresql.dialect import PostgreSQL
    from penstock.store.dialects.sqlite.dialect import SQLite

    dialects: dict[str, Dialect] = {dialect.name: dialect for dialect in (SQLite(), PostgreSQL())}
    if dialect_name not in dialects:
        raise ConfigurationError(
            f"PENSTOCK_DATABASE_URL names {dialect_name!r}; Penstock runs on {' and '.join(sorted(dialects))}"
        )
    return ManualClockDialect(dialects[dialect_name]) if has_manual_clock else dialects[dialect_name]
