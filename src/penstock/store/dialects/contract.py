"""What a database must say for itself; everything else is the same SQL everywhere.

The list is closed on purpose: a statement that needs another difference gets a method here, never an ``if`` of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Protocol

from sqlalchemy import Column, ColumnElement, Connection, FromClause, Insert, Select, Table, bindparam
from sqlalchemy.types import TypeEngine

from penstock.errors import ConfigurationError
from penstock.store.types import Moment

NOW = "the_now"
"""The parameter through which a held clock is handed to every statement."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of rows handed to a statement."""

    name: str
    type: TypeEngine[Any]
    long: bool = False
    """Does it hold texts of hundreds of characters, in thousands of rows?"""


def fields(*columns: Column[Any] | Field) -> tuple[Field, ...]:
    """Fields named and typed like the given columns."""
    return tuple(one if isinstance(one, Field) else Field(one.name, one.type) for one in columns)


class Dialect(Protocol):
    """One database's ways. Statements are built once for each, so it must be hashable."""

    name: str
    in_our_process: bool
    """Does the database work in our own process, or beside it?"""

    def now(self) -> ColumnElement[datetime]:
        """The database's clock, the same throughout one statement."""

    def later(self, moment: ColumnElement[datetime], seconds: ColumnElement[float]) -> ColumnElement[datetime]:
        """``moment`` plus ``seconds``; null when the seconds are null."""

    def rows(self, name: str, fields: Sequence[Field]) -> FromClause:
        """Rows handed in as parameters, to select from or join with."""

    def parameters(self, name: str, fields: Sequence[Field], values: Sequence[Sequence[object]]) -> dict[str, object]:
        """The parameters that fill :meth:`rows`."""

    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """Is the column one of the values listed in the parameter ``name``? The same statement for any number."""

    def bundled(self, stretch: Select[Any]) -> Select[Any]:
        """The statement as it brings thousands of rows most cheaply."""

    def unbundled(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """The rows that :meth:`bundled` brought."""

    def rows_as_json(self, rows: Select[Any]) -> ColumnElement[Any]:
        """The rows of a few, as one JSON array of arrays: for a column of another statement; null for none."""

    def json(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        """Encoded JSON text as the value of a JSON column."""

    def check(self, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        """A condition on rows found by their key: to be checked, never searched by, nor thought selective."""

    def insert_unless_taken(self, table: Table) -> Insert:
        """An INSERT that does nothing, instead of failing, where a unique index already has the row."""

    def together(self, others: tuple[Any, ...], last: Any) -> tuple[Any, ...]:
        """Statements that do not need each other's effects, as few as the database can take them; the last answers."""

    def notice(self, kind: ColumnElement[str]) -> ColumnElement[Any]:
        """What wakes workers of a kind when a row that returns it is written, where a statement can."""

    def begin_bounded(self, connection: Connection, seconds: float) -> None:
        """Begin a transaction whose statements wait for a lock no longer than this; in one way to the server."""

    def take_turns(self, connection: Connection, name: str) -> None:
        """Wait until nobody else is between this call of the same name and the end of their transaction."""

    def tell(self, connection: Connection, channel: str, notices: Sequence[str]) -> None:
        """Tell listening workers when this transaction commits."""

    def is_autocommit(self, connection: Connection) -> bool:
        """Does the driver commit each statement by itself, although a transaction was begun?"""

    def is_passing(self, error: BaseException) -> bool:
        """Would the same transaction have a chance if it were run again (deadlock, busy)?"""

    def is_locked(self, error: BaseException) -> bool:
        """Was a lock waited for as long as the transaction allows?"""

    def fault(self, error: BaseException) -> str | None:
        """The code for what is wrong with the database itself (a full disk), where that is what the error says."""

    def is_defect(self, error: BaseException) -> bool:
        """Is the statement itself wrong, where the driver's class of error does not say so?"""

    def did_not_happen(self, error: BaseException) -> bool:
        """Does the error of a lost connection say that the server had not begun with what was asked?"""


class ByTheHeldClock:
    """The same ways, but the time is a parameter: for tests that hold the clock."""

    def __init__(self, dialect: Dialect) -> None:
        self.name = dialect.name
        self.in_our_process = dialect.in_our_process
        self._ways = dialect

    def now(self) -> ColumnElement[datetime]:
        """The moment the test has set, handed in with each statement."""
        return bindparam(NOW, type_=Moment)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ways, name)


@cache
def dialect_of(dialect_name: str, *, held: bool = False) -> Dialect:
    """The ways of the named database; one object for each, so that statements built for it are built once."""
    from penstock.store.dialects import postgresql, sqlite

    known: dict[str, Dialect] = {"sqlite": sqlite.SQLite(), "postgresql": postgresql.PostgreSQL()}
    if dialect_name not in known:
        raise ConfigurationError(
            f"PENSTOCK_DATABASE_URL names {dialect_name!r}; Penstock runs on {' and '.join(sorted(known))}"
        )
    return ByTheHeldClock(known[dialect_name]) if held else known[dialect_name]
