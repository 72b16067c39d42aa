"""Statements made ready once: the text for the database, and what its parameters and columns have to be turned into.

SQLAlchemy writes each statement's text once too, but looks it up anew each time by walking through the statement, and
makes an object of every row. Somebody waits for a submit and a claim: here a statement that is run again costs a
dictionary look-up, and its rows are the driver's tuples.

Databases of one kind are asked in the same words: a program that opens a second one finds its statements ready.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from types import NoneType
from typing import Any, TypeVar

import orjson
from sqlalchemy import BindParameter, Connection, CursorResult, Delete, Insert, Select, Update
from sqlalchemy.engine import Dialect as SQLAlchemyDialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ColumnClause
from sqlalchemy.types import Float, TypeEngine

from penstock.store.dialects.stored_types import json_of
from penstock.store.placement import TablePlacement, placed_copy, placement_of

Statement = Select[Any] | Insert | Update | Delete
Turn = Callable[[Sequence[Any]], Iterable[Any]]


Row = TypeVar("Row", bound=tuple[Any, ...])
"""A NamedTuple: what a query declares its rows to be."""
_CACHE_SIZE = 1_000
_WIDE = 16
"""Beyond so many columns SQLAlchemy is quicker: it remembers what they are, and looks at those of a text each time."""


class PreparedStatement:
    """One statement for one database."""

    def __init__(self, statement: Statement, dialect: SQLAlchemyDialect) -> None:
        self._placement = placement_of(dialect)
        compiled = statement.compile(dialect=dialect)
        turns = {name: _outward(bind, dialect) or _as_it_is for bind, name in compiled.bind_names.items()}
        parameter_names = [name for bind, name in compiled.bind_names.items() if bind.required]
        # Constants are turned, and lists of them written out, here and never again.
        expanded_state = compiled.construct_expanded_state(dict.fromkeys(parameter_names))
        self._parameter_names = parameter_names
        self._text = expanded_state.statement
        self._plain = [name for name in parameter_names if turns[name] is _as_it_is]
        self._converted_parameters = [(name, turns[name]) for name in parameter_names if turns[name] is not _as_it_is]
        self._constants = {
            name: turns.get(name, _as_it_is)(value)
            for name, value in expanded_state.parameters.items()
            if name not in parameter_names
        }
        self._arrange = _arrange(expanded_state.positiontup)
        column_descriptions = (
            statement.column_descriptions if isinstance(statement, Select) else statement.returning_column_descriptions
        )
        self._wide = statement if isinstance(statement, Select) and len(column_descriptions) > _WIDE else None
        self._columns = tuple(str(column["name"]) for column in column_descriptions)
        self._fitting: set[type] = set()
        self._turns = _inward([column["type"] for column in column_descriptions], dialect)

    def rows(self, connection: Connection, parameters: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        """Execute it; rows are plain tuples."""
        return self._fetch(self._execute(connection, parameters))

    def fetch(self, connection: Connection, parameters: Mapping[str, Any], row: type[Row]) -> list[Row]:
        """Execute it; rows are NamedTuples whose fields are its columns, in their order."""
        if row not in self._fitting:
            self._require_fitting(row)
        if self._wide is not None and getattr(connection.dialect, "penstock_placement", None) == self._placement:
            rows: Iterable[Any] = connection.execute(
                self._wide, {name: parameters[name] for name in self._parameter_names}
            )
        else:
            rows = self._fetch(self._execute(connection, parameters))
        # What ``row._make`` does, without counting the values of each row: they were compared with the columns.
        make: Callable[[Iterable[Any]], Row] = partial(tuple.__new__, row)
        return list(map(make, rows))

    def execute(self, connection: Connection, parameters: Mapping[str, Any]) -> int:
        """Execute it; the answer is how many rows it changed."""
        return self._execute(connection, parameters).rowcount

    def _require_fitting(self, row: type[tuple[Any, ...]]) -> None:
        fields = tuple(row.__annotations__)
        if self._columns != fields:
            raise TypeError(f"{row.__name__} has the fields {fields}, the statement the columns {self._columns}")
        self._fitting.add(row)

    def _execute(self, connection: Connection, parameters: Mapping[str, Any]) -> CursorResult[Any]:
        values = self._constants.copy()
        for name in self._plain:
            values[name] = parameters[name]
        for name, turn in self._converted_parameters:
            values[name] = turn(parameters[name])
        return connection.exec_driver_sql(self._text, self._arrange(values))

    def _fetch(self, result: CursorResult[Any]) -> Sequence[tuple[Any, ...]]:
        rows: Sequence[tuple[Any, ...]] = result.cursor.fetchall()
        result.close()
        if not rows or not self._turns:
            return rows
        columns: list[Any] = list(zip(*rows, strict=True))
        for index, turn in self._turns:
            columns[index] = turn(columns[index])
        return list(zip(*columns, strict=True))


@lru_cache(_CACHE_SIZE)
def prepare(statement: Statement, dialect: SQLAlchemyDialect) -> PreparedStatement:
    """The statement, made ready the first time it is asked for."""
    return _prepare_for_all(statement, _compiling_dialect(dialect))


@lru_cache(_CACHE_SIZE)
def _prepare_for_all(statement: Statement, dialect: SQLAlchemyDialect) -> PreparedStatement:
    return PreparedStatement(statement, dialect)


def _compiling_dialect(dialect: SQLAlchemyDialect) -> SQLAlchemyDialect:
    """The one that compiles for every dialect of the same class and the same settings: a copy, which nobody changes."""
    # A copy: another thread's first statement may have the dialect work something out, and remember it, meanwhile.
    attributes = vars(dialect).copy()
    key = (type(dialect), frozenset(item for item in attributes.items() if _is_setting(item[1])))
    compiling = _compiling_dialects.get(key)
    if compiling is None:
        compiling = _compiling_dialects[key] = placed_copy(dialect, placement_of(dialect))
        compiler = compiling.statement_compiler
        compiling.statement_compiler = type(f"Short{compiler.__name__}", (_ShortColumns, compiler), {})
    return compiling


class _ShortColumns(SQLCompiler):
    """Writes the schema of our tables before the tables, and not before each of their columns.

    A claim is a long statement, and psycopg takes one of more than 4,096 characters apart each time it is run.
    """

    def visit_column(self, column: ColumnClause[Any], *arguments: Any, **options: Any) -> str:
        text = super().visit_column(column, *arguments, **options)
        schema = placement_of(self.dialect).schema
        return text if schema is None else text.removeprefix(f"{self.preparer.quote_schema(schema)}.")


def _is_setting(value: object) -> bool:
    """Is it something a dialect is set to, a function that writes JSON, say? Not its driver, nor what it worked out."""
    return isinstance(value, _SETTINGS) or (callable(value) and not isinstance(value, type))


_SETTINGS = (str, int, float, NoneType, TablePlacement, tuple, frozenset)
_compiling_dialects: dict[Hashable, SQLAlchemyDialect] = {}


def _outward(bind: BindParameter[Any], dialect: SQLAlchemyDialect) -> Callable[[Any], Any] | None:
    return bind.type.dialect_impl(dialect).bind_processor(dialect)


def _inward(types: Sequence[TypeEngine[Any]], dialect: SQLAlchemyDialect) -> tuple[tuple[int, Turn], ...]:
    """Which columns come from the driver as something else than their type says, and what to do: each as a whole."""
    turns: list[tuple[int, Turn]] = []
    for index, type_ in enumerate(types):
        if isinstance(type_, Float):
            continue  # what comes is a float; SQLAlchemy would ask the driver's description of the column first
        processor = type_.dialect_impl(dialect).result_processor(dialect, None)
        if processor is json_of:
            turns.append((index, _values_of_json))
        elif processor is not None:
            turns.append((index, partial(map, processor)))
    return tuple(turns)


def _values_of_json(texts: Sequence[str | None]) -> Iterable[Any]:
    """A thousand small texts are read in a third of the time as one large one."""
    values: list[Any] = orjson.loads(f"[{','.join([text or 'null' for text in texts])}]")
    return values


def _arrange(order: Sequence[str] | None) -> Callable[[dict[str, Any]], Any]:
    """Values as the driver takes them: by name, or in order."""
    if order is None:
        return _as_it_is
    return lambda values: tuple([values[name] for name in order])


def _as_it_is(value: Any) -> Any:
    return value
