"""What a grid shows of an item, and an export of it: the same cells, from this one place."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from penstock.lifecycle.payloads import JSON

BEFORE = ("row", "status")
AFTER = ("attempts", "error_code", "error")
WHOLE = ("result",)
"""The columns of a kind that names none: its items' results as they are."""
_NOTHING: dict[str, Any] = {}


class Grid(NamedTuple):
    """All of a job's items, read as they are asked for; who stops before the end closes the lines."""

    headers: tuple[str, ...]
    lines: Generator[list[Any]]
    number_headers: tuple[str, ...] = ()
    """Those above texts that are numbers."""


def headers(columns: Sequence[str]) -> tuple[str, ...]:
    """The canonical headers of a kind's items.

    >>> headers(("number", "price"))
    ('row', 'status', 'number', 'price', 'attempts', 'error_code', 'error')
    """
    return (*BEFORE, *(columns or WHOLE), *AFTER)


def cells(columns: Sequence[str], result: JSON, normalized: JSON) -> list[Any]:
    """What stands in a kind's own columns: the result, and until there is one what is known of the input.

    >>> cells(("number", "price"), None, {"number": "A-1"})
    ['A-1', None]
    """
    [line] = lines(columns, [(0, "", 0, None, None, result, normalized)])
    return line[len(BEFORE) : -len(AFTER)]


def lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    """The lines of a grid, in the order of :func:`headers`, for rows of the items.

    Each row has its position, status, attempts, error code, error, result and canonical input. A million lines are
    made here: hence one loop, and no call for each of them.
    """
    for position, status, attempts, error_code, error, result, normalized in rows:
        if not columns:
            yield [position, status, result, attempts, error_code, error]
            continue
        fields = result if type(result) is dict else normalized if type(normalized) is dict else _NOTHING
        yield [position, status, *map(fields.get, columns), attempts, error_code, error]
