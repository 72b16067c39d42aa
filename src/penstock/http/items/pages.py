"""Pages of items, each read at once: the job, what lies before the page, and the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.http.pagination import read_place
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import Job
from penstock.lifecycle.states import OPEN_STATUSES, ItemStatus
from penstock.operations import read_items, read_jobs
from penstock.operations.read_items import ItemCursor, ItemRow, TimeRange
from penstock.store.transaction import Transaction

MAX_ON_A_PAGE = 500
DEEPEST = 10_000
"""How many items may lie before a numbered page of some statuses; beyond that, use cursors."""


@dataclass(frozen=True, slots=True)
class GridQuery:
    """Which items of a job, in which order, and which page of them."""

    statuses: list[ItemStatus] | None
    between: TimeRange | None
    sort: str | None
    page: int | None
    after: str | None
    page_size: int

    def __post_init__(self) -> None:
        if self.in_order and not self.is_everything:
            raise InvalidInput(
                "some statuses or times come in the order of their last change: sort=updatedAt or sort=-updatedAt",
                field="sort",
            )
        if self.page is not None and self.after is not None:
            raise InvalidInput("a page is asked for by its number or by a cursor, not by both", field="page")

    @property
    def is_everything(self) -> bool:
        """Does it ask for all items?"""
        return self.statuses is None and self.between is None

    @property
    def in_order(self) -> bool:
        """Is it ordered by position? Some statuses or times come by last change, unless the query says otherwise."""
        return self.is_everything if self.sort is None else self.sort.endswith("position")

    @property
    def is_descending(self) -> bool:
        """Backwards?"""
        return self.sort is not None and self.sort.startswith("-")


def read_grid(transaction: Transaction, job_id: UUID, caller: Caller, query: GridQuery) -> tuple[Job, list[ItemRow]]:
    """A job, and a page of its items."""
    job = read_jobs.get_job(transaction, job_id, caller)

    def look(place: ItemCursor | None, limit: int) -> list[ItemRow]:
        if query.in_order:
            behind = None if place is None else place.position
            return read_items.page_in_order(
                transaction, job_id, behind=behind, limit=limit, descending=query.is_descending
            )
        return read_items.page_by_change(
            transaction,
            job_id,
            statuses=query.statuses or list(ItemStatus),
            after=place,
            between=query.between,
            limit=limit,
            descending=query.is_descending,
        )

    if query.after is not None:
        place = read_place(query.after, in_order=query.in_order, descending=query.is_descending)
        return job, look(place, query.page_size)
    rows = look(_begin_of_page(query, job, look), query.page_size)
    # A numbered page shows the list as it is now; what has changed since is for those who walk through it.
    return job, [row for row in rows if not row.place.is_returning]


def _begin_of_page(
    query: GridQuery, job: Job, look: Callable[[ItemCursor | None, int], list[ItemRow]]
) -> ItemCursor | None:
    """Where a numbered page begins: by arithmetic in the order of positions, else by a walk that has a bound."""
    page = query.page or 1
    skipped = (page - 1) * query.page_size
    if query.in_order:
        behind = job.progress.total + 1 - skipped if query.is_descending else skipped
        return ItemCursor(position=max(0, min(behind, 2**31 - 1)))
    if skipped > DEEPEST:
        raise InvalidInput(
            f"page {page:,} begins behind more than {DEEPEST:,} items; follow `next` with `after` instead",
            field="page",
            code="PAGE_TOO_DEEP",
        )
    place: ItemCursor | None = None
    while skipped:
        passed_rows = look(place, min(skipped, MAX_ON_A_PAGE))
        if not passed_rows:
            break
        skipped -= len(passed_rows)
        place = passed_rows[-1].place
    return place


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """Which open items, and behind which place."""

    statuses: list[ItemStatus]
    user: str | None
    kind: str | None
    after: ItemCursor | None
    between: TimeRange | None
    page_size: int


def read_pending(transaction: Transaction, query: PendingQuery) -> list[ItemRow]:
    """What waits in the jobs of a user, or of everybody."""
    return read_items.pending_page(
        transaction,
        statuses=query.statuses,
        user=query.user,
        kind=query.kind,
        after=query.after,
        between=query.between,
        limit=query.page_size,
    )


def read_pending_of_job(transaction: Transaction, job_id: UUID, caller: Caller, query: PendingQuery) -> list[ItemRow]:
    """What waits in one job, if the caller may see it."""
    if not set(OPEN_STATUSES).issuperset(query.statuses):
        raise InvalidInput("what waits is PENDING or PROCESSING; a job's own items have the others", field="statuses")
    job = read_jobs.get_job(transaction, job_id, caller)
    if query.kind not in (None, job.kind) or job.finished:
        return []
    return read_items.page_by_change(
        transaction,
        job_id,
        statuses=query.statuses,
        after=query.after,
        between=query.between,
        limit=query.page_size,
    )
