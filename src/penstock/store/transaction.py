"""One transaction: what queries run their statements in, and what it has to tell the workers.

Operations are functions of a transaction and never commit; the :class:`penstock.store.engine.Store` begins and ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.engine import Dialect as SQLAlchemyDialect

from penstock.store.dialects.dialect import NOW
from penstock.store.notices import stop_notice
from penstock.store.statement_cache import Row, Statement, prepare

if TYPE_CHECKING:
    from penstock.store.engine import Store

Value = TypeVar("Value")
Line = tuple[str, str, dict[str, Any]]
"""A line of the log: what it says, its level, and what belongs to it."""


class Transaction:
    """One transaction on one connection."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        single_statement: bool = False,
        *,
        compiled_with: SQLAlchemyDialect | None = None,
    ) -> None:
        self.connection = connection
        self.store = store
        self.single_statement = single_statement
        """Was it promised that this is no more than one statement?"""
        self.dialect = store.dialect
        self._compiling = compiled_with or store.dialect_for(connection)
        self._fixed_now = store.clock.held()
        self._notices: set[str] = set()
        self.lines: list[Line] = []
        """What the log says of it once it has committed."""

    def log(self, line: str, *, level: str, **fields: Any) -> None:
        """Say this in the log when, and only when, this commits."""
        self.lines.append((line, level, fields))

    def rows(self, statement: Statement, parameters: dict[str, Any]) -> Sequence[tuple[Any, ...]]:
        """What the statement returns, in plain tuples: for answers of thousands of rows."""
        return prepare(statement, self._compiling).rows(self.connection, self._with_moment(parameters))

    def fetch(self, row: type[Row], statement: Statement, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Execute one statement; its columns are the fields of ``row``."""
        return prepare(statement, self._compiling).fetch(self.connection, self._with_moment(parameters), row)

    def fetch_one(self, row: type[Row], statement: Statement, parameters: dict[str, Any] | None = None) -> Row | None:
        """Execute a statement that answers with one row or none."""
        rows = self.fetch(row, statement, parameters)
        return rows[0] if rows else None

    def values(self, _type: type[Value], statement: Statement, parameters: dict[str, Any] | None = None) -> list[Value]:
        """Execute one statement of one column; the answer is that column."""
        rows = prepare(statement, self._compiling).rows(self.connection, self._with_moment(parameters))
        return [value for (value,) in rows]

    def value(self, type_: type[Value], statement: Statement, parameters: dict[str, Any] | None = None) -> Value | None:
        """Execute a statement of one column that answers with one row or none."""
        values = self.values(type_, statement, parameters)
        return values[0] if values else None

    def execute(self, statement: Statement, parameters: dict[str, Any] | None = None) -> int:
        """Execute one statement; the answer is how many rows it changed."""
        return prepare(statement, self._compiling).execute(self.connection, self._with_moment(parameters))

    def join_statements(self, others: tuple[Statement, ...], last: Statement, parameters: dict[str, Any]) -> Statement:
        """Statements that do not need each other's effects, as one that is to be executed and answers as ``last`` does.

        What the database does not take in one statement with the last has been executed already.
        """
        *before, joined_statement = self.dialect.together(others, last)
        for statement in before:
            self.execute(statement, parameters)
        return joined_statement  # type: ignore[no-any-return]

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
        self._tell([stop_notice(job_id) for job_id in job_ids])

    @property
    def notices(self) -> frozenset[str]:
        """What the workers are told when this commits."""
        return frozenset(self._notices)

    def _with_moment(self, parameters: dict[str, Any] | None) -> dict[str, Any]:
        parameters = parameters or {}
        return parameters if self._fixed_now is None else {NOW: self._fixed_now, **parameters}

    def _tell(self, notices: Iterable[str]) -> None:
        fresh = [notice for notice in notices if notice not in self._notices]
        if fresh:
            self._notices.update(fresh)
            self._notify(fresh)

    def _notify(self, notices: Sequence[str]) -> None:
        self.dialect.tell(self.connection, self.store.placement.channel, notices)
