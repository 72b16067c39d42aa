"""All of a job's items as a grid shows them, read a stretch at a time: a million need no more memory than a thousand.

A stretch is one statement. While the job runs each stretch shows the items as they are when it is read; every item
comes exactly once, because positions do not change.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

from penstock.lifecycle import grid
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.states import ItemStatus
from penstock.operations.read_jobs import get_job
from penstock.store.engine import Store
from penstock.store.queries.export import ExportRow, rows_to_export

_FIRST_BATCH_SIZE = 50
_BATCH_SIZE = 2_000
_BATCH_BYTES = 8 * 1024 * 1024
_WEIGHED_ROWS = 8


def export_rows(
    store: Store,
    job_id: UUID,
    caller: Caller,
    columns: Sequence[str],
    statuses: Sequence[ItemStatus] | None = None,
) -> Generator[list[Any]]:
    """The lines of a job's grid, in the order of the items; of some statuses alone where they are named.

    A job's row is deleted before its items, so one that is still there at the end had all its items before.
    """

    def stretch_behind(position: int, size: int) -> list[ExportRow]:
        question = partial(rows_to_export, job_id=job_id, statuses=statuses, position=position, limit=size)
        return store.read(question, single_statement=True)

    with ThreadPoolExecutor(1, thread_name_prefix="penstock-export") as reader:
        coming = reader.submit(stretch_behind, 0, _FIRST_BATCH_SIZE)
        while stretch := coming.result():
            # The next one is read while somebody writes this one.
            coming = reader.submit(stretch_behind, stretch[-1].position, _size_behind(stretch))
            yield from grid.lines(columns, stretch)
    store.read(partial(get_job, job_id=job_id, caller=caller))


def _size_behind(stretch: Sequence[ExportRow]) -> int:
    """How many items to read next: more and more, unless they are heavy."""
    heaviest = max(len(repr(row)) for row in stretch[:: max(1, len(stretch) // _WEIGHED_ROWS)])
    return max(1, min(4 * len(stretch), _BATCH_SIZE, _BATCH_BYTES // heaviest))
