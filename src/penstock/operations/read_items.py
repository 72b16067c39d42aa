"""Pages of items: a job's grid, and what waits, of one user or of all.

**In the order of their positions**, which never change, a walk from page to page sees every item exactly once, whatever
the workers do meanwhile.

**In the order in which they last changed** an item that changes moves to the end. So a walk sees every item that was
there when it began at least once, in the state it had when it was seen; one that changed after it was seen comes again
if it still has one of the statuses asked for. It cannot slip past: an item moves only forward, and is met either at its
old place or at its new one.

**Backwards**, the last changed first, an item that changes moves to where the walk has been. So a walk backwards goes
down to the item that changed longest ago, turns, and comes back with what has changed since it began, the oldest change
first: the promise is the same. The walk remembers when it began in the :class:`ItemCursor` of each row, and goes on
behind ``page[-1].place``. A change is stamped before its transaction commits, so the walk turns ``_STAMPED_BEFORE``
earlier: what changed within that time before it began comes twice, with the same ``updated_at``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol
from uuid import UUID

import structlog

from penstock.errors import InvalidInput
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ItemStatus
from penstock.store.queries import item_counts
from penstock.store.queries import read_items as queries
from penstock.store.queries.read_items import PageRow
from penstock.store.transaction import Transaction

MAX_ON_A_PAGE = 1_000
_STAMPED_BEFORE = timedelta(seconds=5)
"""The longest a transaction that changes items is thought to take."""
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_MAX_CODES = 100
_log = structlog.get_logger("penstock.pages")


@dataclass(frozen=True, slots=True)
class ItemCursor:
    """Where a page ended: behind the item that last changed then, or behind a position."""

    moment: datetime | None = None
    item_id: int = 0
    position: int = 0
    began: datetime | None = None
    """When a walk backwards by last change began."""
    is_returning: bool = False
    """Has that walk been at its end, and is on the way back with what has changed since?"""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Only items that last changed in this time."""

    earliest: datetime = _EARLIEST
    latest: datetime = _LATEST


@dataclass(frozen=True, slots=True)
class Summary:
    """What tells people which item it is."""

    title: str | None
    more: Mapping[str, str | None] = field(default_factory=dict)
    """What the kinds say tells their items apart, by its name."""


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item as a grid shows it: its input only in a few words."""

    id: int
    job_id: UUID
    user_id: str | None
    kind: str
    position: int
    status: ItemStatus
    attempts: int
    deaths: int
    locked_by: str | None
    locked_at: datetime | None
    ready_at: datetime | None
    updated_at: datetime
    last_error: str | None
    error_code: str | None
    summary: Summary
    place: ItemCursor
    """Where the next page begins when this item is the last of its page."""
    normalized: JSON = None
    result: JSON = None


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Items of one job that ended alike."""

    status: ItemStatus
    error_code: str | None
    count: int
    example: str | None


class PageQuery(Protocol):
    """A query of a page, with all but its limit."""

    def __call__(self, transaction: Transaction, /, *, limit: int) -> list[PageRow]:
        """Run it."""


def page_in_order(
    transaction: Transaction, job_id: UUID, *, behind: int | None, limit: int, descending: bool = False
) -> list[ItemRow]:
    """Items in their own order, behind a position; backwards, before it."""
    position = behind if behind is not None else (2**31 - 1 if descending else 0)
    query = partial(queries.page_by_position, job_id=job_id, position=position, descending=descending)
    return _page(transaction, query, limit)


def page_by_change(
    transaction: Transaction,
    job_id: UUID,
    *,
    statuses: Sequence[ItemStatus],
    after: ItemCursor | None,
    limit: int,
    between: TimeRange | None = None,
    descending: bool = False,
    results: bool = True,
) -> list[ItemRow]:
    """Items of some statuses, those that changed longest ago first; or backwards, and then what has changed since."""
    ordered_statuses = _in_order(statuses)

    def look(place: ItemCursor | None, size: int, *, down: bool) -> list[ItemRow]:
        query = partial(
            queries.page_by_change,
            job_id=job_id,
            statuses=ordered_statuses,
            after=_place(place),
            between=_stretch(between),
            descending=down,
            results=results,
        )
        return _page(transaction, query, size, walk=place if descending else None, down=down)

    if not descending:
        return look(after, limit, down=False)
    if after is None:
        return look(None, limit, down=True)
    if after.began is None:
        raise InvalidInput(
            "a walk backwards by last change goes on behind the `place` of the last item, which knows when it began",
            field="after",
        )
    if after.is_returning:
        return look(after, limit, down=False)
    rows = look(after, limit, down=True)
    if len(rows) < limit:
        turn = ItemCursor(after.began - _STAMPED_BEFORE, began=after.began, is_returning=True)
        rows += look(turn, limit - len(rows), down=False)
    return rows


def pending_page(
    transaction: Transaction,
    *,
    statuses: Sequence[ItemStatus],
    user: str | None,
    kind: str | None,
    after: ItemCursor | None,
    limit: int,
    between: TimeRange | None = None,
) -> list[ItemRow]:
    """Open items of ``user``'s jobs, or of everybody's when there is none."""
    ordered_statuses = _in_order(statuses)
    if not {ItemStatus.PENDING, ItemStatus.PROCESSING}.issuperset(ordered_statuses):
        raise InvalidInput("what waits is PENDING or PROCESSING; a job's own items have the others", field="statuses")
    kinds = [kind] if kind is not None else []
    if user is None and kind is None:
        kinds = sorted(open_counts(transaction, user=None))
        if not kinds:
            return []
    query = partial(
        queries.pending_page,
        statuses=ordered_statuses,
        user_id=user,
        kinds=kinds,
        after=_place(after),
        between=_stretch(between),
    )
    return _page(transaction, query, limit)


def open_counts(transaction: Transaction, *, user: str | None) -> dict[str, int]:
    """How many items are not over, by kind; a kind with jobs that go on is named even when nothing is left of them."""
    return {row.kind: row.items for row in item_counts.open_counts(transaction, user)}


def error_groups(transaction: Transaction, job_id: UUID) -> list[ErrorGroup]:
    """A job's failures by error code, the most frequent first."""
    rows = item_counts.errors_by_code(transaction, job_id, limit=_MAX_CODES)
    return [ErrorGroup(ItemStatus(row.status), row.error_code, row.items, row.example) for row in rows]


def _require_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_ON_A_PAGE:
        raise InvalidInput(f"a page has 1 to {MAX_ON_A_PAGE:,} items, not {limit:,}", field="pageSize")
    return limit


def _in_order(statuses: Sequence[ItemStatus]) -> tuple[ItemStatus, ...]:
    """Each once, in one order: there are few combinations, and each is a statement of its own."""
    if not statuses:
        raise InvalidInput(f"name at least one status of {', '.join(ItemStatus)}", field="statuses")
    return tuple(status for status in ItemStatus if status in statuses)


def _place(cursor: ItemCursor | None) -> queries.Place | None:
    return None if cursor is None else (cursor.moment or _EARLIEST, cursor.item_id)


def _stretch(between: TimeRange | None) -> queries.Stretch | None:
    return None if between is None else (between.earliest, between.latest)


def _page(
    transaction: Transaction,
    query: PageQuery,
    limit: int,
    *,
    walk: ItemCursor | None = None,
    down: bool = False,
) -> list[ItemRow]:
    """Run the query, and say how long it took and where the page begins and ends.

    ``walk`` is the place a walk backwards has come to; one that goes ``down`` without a place begins here.
    """
    began_at = time.perf_counter()
    names = [name for name, _ in transaction.store.item_summary()]
    rows = [_item_row(row, names, walk, down=down) for row in query(transaction, limit=_require_limit(limit))]
    milliseconds = (time.perf_counter() - began_at) * 1000.0
    slow = milliseconds > transaction.store.slow_query_ms
    (_log.warning if slow else _log.info)(
        "a page of items was slow" if slow else "a page of items",
        milliseconds=round(milliseconds, 1),
        items=len(rows),
        first=_bound(rows[0]) if rows else None,
        last=_bound(rows[-1]) if rows else None,
    )
    return rows


def _bound(row: ItemRow) -> str:
    return f"{row.updated_at.isoformat()}|{row.id}"


def _item_row(row: PageRow, names: Sequence[str], walk: ItemCursor | None, *, down: bool) -> ItemRow:
    began = walk.began if walk is not None else row.read_at if down else None
    is_returning = walk is not None and walk.is_returning
    return ItemRow(
        id=row.id,
        job_id=row.job_id,
        user_id=row.user_id,
        kind=row.kind,
        position=row.position,
        status=ItemStatus(row.status),
        attempts=row.attempts,
        deaths=row.deaths,
        locked_by=row.locked_by,
        locked_at=row.locked_at,
        ready_at=row.ready_at,
        updated_at=row.updated_at,
        last_error=row.last_error,
        error_code=row.error_code,
        summary=Summary(row.input_title, dict(zip(names, row.summary_parts(), strict=False))),
        place=ItemCursor(row.updated_at, row.id, row.position, began, is_returning),
        normalized=row.normalized_json,
        result=row.result_json,
    )
