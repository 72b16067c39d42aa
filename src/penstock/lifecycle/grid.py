"""What a grid shows of an item, and an export of it: the same cells, from this one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.lifecycle.payloads import JSON

BEFORE = ("row", "status")
AFTER = ("attempts", "error_code", "error")
WHOLE = ("result",)
"""The columns of a kind that names none: its items' results as they are."""


def headers(columns: Sequence[str]) -> tuple[str, ...]:
    """The canonical headers of a kind's items.

    >>> headers(("sku", "price"))
    ('row', 'status', 'sku', 'price', 'attempts', 'error_code', 'error')
    """
    return (*BEFORE, *(columns or WHOLE), *AFTER)


def cells(columns: Sequence[str], result: JSON, normalized: JSON) -> list[Any]:
    """What stands in a kind's own columns: the result, and until there is one what is known of the input.

    >>> cells(("sku", "price"), None, {"sku": "A-1"})
    ['A-1', None]
    """
    if not columns:
        return [result]
    shown = result if isinstance(result, dict) else normalized
    return [shown.get(name) for name in columns] if isinstance(shown, dict) else [None] * len(columns)


def row(
    columns: Sequence[str],
    position: int,
    status: str,
    attempts: int,
    error_code: str | None,
    error: str | None,
    result: JSON,
    normalized: JSON,
) -> list[Any]:
    """One line of a grid, in the order of :func:`headers`."""
    return [position, status, *cells(columns, result, normalized), attempts, error_code, error]
