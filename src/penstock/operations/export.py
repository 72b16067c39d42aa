"""What a grid shows of an item, and an export of all of a job's items: the same cells, from this one place.

They are read a stretch at a time: a million need no more memory than a thousand.

A stretch is one statement. While the job runs each stretch shows the items as they are when it is read; every item
comes exactly once, because positions do not change.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ItemStatus
from penstock.operations.read_jobs import get_job, look_at_job
from penstock.store.engine import Store
from penstock.store.host import Host
from penstock.store.queries.export import ExportRow, rows_to_export

BEFORE = ("row", "status")
AFTER = ("attempts", "error_code", "error")
WHOLE = ("result",)
"""The columns of a kind that names none: its items' results as they are."""
_NOTHING: dict[str, Any] = {}

_FIRST_BATCH_SIZE = 50
_BATCH_SIZE = 2_000
_BATCH_BYTES = 8 * 1024 * 1024
_WEIGHED_ROWS = 8


class Grid(NamedTuple):
    """All of a job's items, read as they are asked for; who stops before the end closes the lines."""

    headers: tuple[str, ...]
    lines: Generator[list[Any]]
    number_headers: tuple[str, ...] = ()
    """Those above texts that are numbers."""


def export_grid(host: Host, job_id: UUID, caller: Caller, *, statuses: Sequence[ItemStatus] | None = None) -> Grid:
    """A job's grid, its lines read as they are asked for.

    Where the job is pruned meanwhile, the lines end with :class:`JobPruned`, not as if these were all.
    """
    job = look_at_job(host.store, job_id, caller, partial(get_job, job_id=job_id, caller=caller))
    kind = host.kinds.get(job.kind) if job.kind in host.kinds else None
    columns, numbers = ((), ()) if kind is None else (kind.columns, kind.number_columns)
    return Grid(headers(columns), export_rows(host.store, job.id, caller, columns, statuses), numbers)


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
            yield from lines(columns, stretch)
    store.read(partial(get_job, job_id=job_id, caller=caller))


def _size_behind(stretch: Sequence[ExportRow]) -> int:
    """How many items to read next: more and more, unless they are heavy."""
    heaviest = max(len(repr(row)) for row in stretch[:: max(1, len(stretch) // _WEIGHED_ROWS)])
    return max(1, min(4 * len(stretch), _BATCH_SIZE, _BATCH_BYTES // heaviest))


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
