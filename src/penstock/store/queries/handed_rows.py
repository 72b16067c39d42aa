"""Rows handed to a statement: the NamedTuple of which a query takes many, and what its fields are in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import FromClause
from sqlalchemy.types import TypeEngine

from penstock.store.dialects.dialect import Dialect, Field

HandedRow = TypeVar("HandedRow", bound=tuple[Any, ...])


class HandedRows(Generic[HandedRow]):
    """Many of one NamedTuple, as a table to select from or join with.

    >>> from typing import NamedTuple
    >>> from sqlalchemy import Integer
    >>> class Stretch(NamedTuple):
    ...     first: int
    ...     last: int
    >>> HandedRows("stretches", Stretch, first=Integer())
    Traceback (most recent call last):
    TypeError: Stretch has the fields ('first', 'last'), but types for ('first',) are given
    """

    def __init__(
        self, name: str, row: type[HandedRow], /, *, long: tuple[str, ...] = (), **types: TypeEngine[Any]
    ) -> None:
        """The fields of ``long`` hold texts of hundreds of characters."""
        names = tuple(row.__annotations__)
        if names != tuple(types):
            raise TypeError(f"{row.__name__} has the fields {names}, but types for {tuple(types)} are given")
        self._name = name
        self._fields = tuple(Field(field, type_, long=field in long) for field, type_ in types.items())

    def table(self, dialect: Dialect) -> FromClause:
        """The rows as a statement sees them."""
        return dialect.rows(self._name, self._fields)

    def parameters(self, dialect: Dialect, rows: Sequence[HandedRow]) -> dict[str, Any]:
        """The parameters that fill the table."""
        return dialect.parameters(self._name, self._fields, rows)
