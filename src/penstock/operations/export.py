"""All of a job's items as a grid shows them, read a stretch at a time: a million need no more memory than a thousand.

A stretch is one statement. While the job runs each stretch shows the items as they are when it is read; every item
comes exactly once, because positions do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

from penstock.lifecycle import grid
from penstock.lifecycle.states import ItemStatus
from penstock.store.engine import Store
from penstock.store.statements.read_items import rows_to_export

_AT_FIRST = 50
_AT_ONCE = 2_000
_BYTES_AT_ONCE = 8 * 1024 * 1024
_WEIGHED = 8


def export_rows(
    store: Store, job_id: UUID, columns: Sequence[str], statuses: Sequence[ItemStatus] | None = None
) -> Iterator[list[Any]]:
    """The lines of a job's grid, in the order of the items; of some statuses alone where they are named."""
    asked: dict[str, Any] = {"the_job_id": job_id}
    if statuses is not None:
        asked["the_statuses"] = [status.value for status in statuses]
    statement = rows_to_export(store.dialect, statuses=statuses is not None)

    def stretch_behind(position: int, size: int) -> Sequence[Sequence[Any]]:
        given = asked | {"the_position": position, "the_limit": size}
        return store.dialect.unbundled(store.read(lambda one: one.rows(statement, given), single_statement=True))

    with ThreadPoolExecutor(1, thread_name_prefix="penstock-export") as reader:
        coming = reader.submit(stretch_behind, 0, _AT_FIRST)
        while stretch := coming.result():
            # The next one is read while somebody writes this one.
            coming = reader.submit(stretch_behind, stretch[-1][0], _size_behind(stretch))
            yield from grid.lines(columns, stretch)


def _size_behind(stretch: Sequence[Sequence[Any]]) -> int:
    """How many items to read next: more and more, unless they are heavy."""
    heaviest = max(len(repr(row)) for row in stretch[:: max(1, len(stretch) // _WEIGHED)])
    return max(1, min(4 * len(stretch), _AT_ONCE, _BYTES_AT_ONCE // heaviest))
