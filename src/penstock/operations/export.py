"""All of a job's items as a grid shows them, read a stretch at a time: a million need no more memory than a thousand.

A stretch is one statement. While the job runs each stretch shows the items as they are when it is read; every item
comes exactly once, because positions do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from penstock.lifecycle import grid
from penstock.store.engine import Store
from penstock.store.statements.item_pages import rows_to_export

_AT_ONCE = 2_000


def export_rows(store: Store, job_id: UUID, columns: Sequence[str]) -> Iterator[list[Any]]:
    """The lines of a job's grid, in the order of the items."""
    after = 0
    while stretch := _stretch(store, job_id, after):
        for row in stretch:
            yield grid.row(columns, *row)
        after = stretch[-1][0]


def _stretch(store: Store, job_id: UUID, after: int) -> Sequence[tuple[Any, ...]]:
    asked = {"the_job_id": job_id, "the_position": after, "the_limit": _AT_ONCE}
    return store.read(lambda one: one.rows(rows_to_export(one.ways), asked), at_once=True)
