"""Answers of thousands of rows, in plain tuples.

SQLAlchemy makes an object of each row and turns its values one by one; for a claim that costs as much as the handlers.
Here the driver's tuples are taken as they are, and the columns whose type asks for it are turned as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import CursorResult, Update
from sqlalchemy.engine import Dialect


def plain_rows(statement: Update, result: CursorResult[Any]) -> Sequence[tuple[Any, ...]]:
    """All rows an UPDATE … RETURNING has answered with."""
    rows: Sequence[tuple[Any, ...]] = result.cursor.fetchall()
    result.close()
    turned = _turned(statement, result.context.dialect)
    if not rows or not turned:
        return rows
    columns: list[Any] = list(zip(*rows, strict=True))
    for index, turn in turned:
        columns[index] = map(turn, columns[index])
    return list(zip(*columns, strict=True))


@cache
def _turned(statement: Update, dialect: Dialect) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
    """Which of the statement's columns come from the driver as something else than their type says, and what to do."""
    answered = enumerate(statement.returning_column_descriptions)
    turns = ((index, one["type"].dialect_impl(dialect).result_processor(dialect, None)) for index, one in answered)
    return tuple((index, turn) for index, turn in turns if turn is not None)
