"""Answers of thousands of rows, in plain tuples.

SQLAlchemy makes an object of each row and turns its values one by one; for a claim that costs as much as the handlers.
Here the driver's tuples are taken as they are, and the columns whose type asks for it are turned as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import orjson
from sqlalchemy import CursorResult, Update
from sqlalchemy.engine import Dialect

from penstock.store.types import json_of


def plain_rows(statement: Update, result: CursorResult[Any]) -> Sequence[tuple[Any, ...]]:
    """All rows an UPDATE … RETURNING has answered with."""
    rows: Sequence[tuple[Any, ...]] = result.cursor.fetchall()
    result.close()
    turned = _turned(statement, result.context.dialect)
    if not rows or not turned:
        return rows
    columns: list[Any] = list(zip(*rows, strict=True))
    for index, turn in turned:
        columns[index] = turn(columns[index])
    return list(zip(*columns, strict=True))


Turn = Callable[[Sequence[Any]], Iterable[Any]]


@cache
def _turned(statement: Update, dialect: Dialect) -> tuple[tuple[int, Turn], ...]:
    """Which of the statement's columns come from the driver as something else than their type says, and what to do."""
    turns: list[tuple[int, Turn]] = []
    for index, described in enumerate(statement.returning_column_descriptions):
        one = described["type"].dialect_impl(dialect).result_processor(dialect, None)
        if one is json_of:
            turns.append((index, _texts_of_json))
        elif one is not None:
            turns.append((index, partial(map, one)))
    return tuple(turns)


def _texts_of_json(texts: Sequence[str | None]) -> Iterable[Any]:
    """A thousand small texts are read in a third of the time as one large one."""
    values: list[Any] = orjson.loads(f"[{','.join([text or 'null' for text in texts])}]")
    return values
