"""Reading: a job, a page of jobs, its items, its history.

**A search** reads what it looks through, so it has a bound: one page looks through the next ``MAX_SEARCHED`` jobs of
the list and no further. Where these are used up before the page is full, the page is short, or even empty, and still
has a place to go on from: behind the last job that was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TypeVar
from uuid import UUID

from penstock.errors import InvalidInput, JobNotFound, JobPruned
from penstock.lifecycle import bounds
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import HistoryEntry, Item, Job
from penstock.lifecycle.payloads import storable_text
from penstock.lifecycle.states import ItemStatus, JobState
from penstock.store.engine import Store
from penstock.store.queries import list_jobs as list_queries
from penstock.store.queries import prune as prune_queries
from penstock.store.queries import read_jobs as queries
from penstock.store.queries.list_jobs import JobConditions, SearchPatterns
from penstock.store.rows import history_entry_from, item_from, job_from
from penstock.store.transaction import Transaction

Answer = TypeVar("Answer")
MAX_SEARCHED = 20_000
HISTORY_PAGE = 1_000
"""So many lines of a history are read at a time."""
LONGEST_SEARCH = 255
_WHOLE = 32
_DIGITS = re.compile("[0-9a-f]{4,32}")
_WILD = re.compile(r"([\\%_])")


def not_found(transaction: Transaction, job_id: UUID, caller: Caller) -> JobNotFound:
    """The same words whether there is no such job or it belongs to somebody else; others for one that was pruned.

    Where a single statement was promised nobody looks for those: see :func:`say_if_pruned`.
    """
    if not transaction.single_statement:
        say_if_pruned(transaction, job_id, caller)
    return JobNotFound(f"there is no job {job_id}")


def say_if_pruned(transaction: Transaction, job_id: UUID, caller: Caller) -> None:
    """Raise :class:`JobPruned` for a job that the caller could see while it was there."""
    moment = prune_queries.pruned_at(transaction, job_id, caller)
    if moment is not None:
        raise JobPruned(
            f"job {job_id} was deleted on {moment:%Y-%m-%d at %H:%M} UTC: it had been kept for as long as jobs of its "
            "kind are"
        )


def look_at_job(store: Store, job_id: UUID, caller: Caller, question: Callable[[Transaction], Answer]) -> Answer:
    """Ask about one job in a single statement; one that is not there is told from one that was pruned."""
    try:
        return store.read(question, single_statement=True)
    except JobNotFound:
        store.read(partial(say_if_pruned, job_id=job_id, caller=caller), single_statement=True)
        raise


def get_job(transaction: Transaction, job_id: UUID, caller: Caller) -> Job:
    """One job as it stands now."""
    row = queries.job_by_id(transaction, job_id, caller)
    if row is None:
        raise not_found(transaction, job_id, caller)
    return job_from(row)


@dataclass(frozen=True, slots=True)
class JobCursor:
    """The place in a listing behind which the next page begins."""

    created_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a list shows."""

    states: tuple[JobState, ...] | None = None
    kind: str | None = None
    search: str | None = None
    """In the title, the kind, the owner or the error code, or how the id begins or ends (4 digits or more)."""
    created_from: datetime | None = None
    created_to: datetime | None = None
    """Before then."""
    killed: bool | None = None
    """Of those that failed only the ones that something killed, or only the others; None for both."""

    def __post_init__(self) -> None:
        if self.search is not None and len(self.search) > LONGEST_SEARCH:
            raise InvalidInput(
                f"a search has up to {LONGEST_SEARCH} characters, not {len(self.search):,}", field="search"
            )
        for name in ("created_from", "created_to"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise InvalidInput(f"{name} is {moment.isoformat()}; it must name its zone", field=name)

    @property
    def text(self) -> str | None:
        """What is searched for; none when that is nothing but blanks."""
        return None if self.search is None else storable_text(self.search).strip() or None

    @property
    def is_search(self) -> bool:
        """Does it look through jobs that it does not show? Then a page has a bound, see above."""
        return self.text is not None or self.killed is not None

    @property
    def whole_id(self) -> UUID | None:
        """The one job that is searched for, where the text is a whole id."""
        digits = (self.text or "").replace("-", "").lower()
        return UUID(hex=digits) if len(digits) == _WHOLE and _DIGITS.fullmatch(digits) else None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs, and where the list goes on; none at its end."""

    jobs: list[Job] = field(default_factory=list)
    next: JobCursor | None = None


ALL_JOBS = JobFilter()


def list_jobs(
    transaction: Transaction,
    caller: Caller,
    job_filter: JobFilter = ALL_JOBS,
    *,
    after: JobCursor | None = None,
    limit: int = 100,
    payloads: bool = False,
) -> list[Job]:
    """A page of jobs, newest first, without their payloads unless those are wanted."""
    conditions = _conditions(caller, job_filter, after)
    bounds.LIMIT.require(limit)
    if not job_filter.is_search:
        rows = list_queries.list_jobs(transaction, conditions, limit=limit, payloads=payloads)
    else:
        patterns = None if job_filter.text is None else _patterns(job_filter.text)
        rows = list_queries.search_jobs(
            transaction,
            conditions,
            patterns,
            killed=job_filter.killed,
            search_limit=MAX_SEARCHED,
            limit=limit,
            payloads=payloads,
        )
    return [job_from(row) for row in rows]


def page_of_jobs(
    transaction: Transaction,
    caller: Caller,
    job_filter: JobFilter = ALL_JOBS,
    *,
    after: JobCursor | None = None,
    limit: int = 100,
    payloads: bool = False,
) -> JobPage:
    """A page of jobs and the place behind it; see above for what that is in a search."""
    if job_filter.whole_id is not None and after is None:
        # However old it is: nobody should have to page to a job they can name.
        by_id = replace(_conditions(caller, job_filter, None), job_id=job_filter.whole_id)
        rows = list_queries.list_jobs(transaction, by_id, limit=1, payloads=payloads)
        if rows:
            return JobPage([job_from(rows[0])])
    jobs = list_jobs(transaction, caller, job_filter, after=after, limit=limit, payloads=payloads)
    if len(jobs) == limit:
        return JobPage(jobs, JobCursor(jobs[-1].created_at, jobs[-1].id))
    if not job_filter.is_search:
        return JobPage(jobs)
    last = list_queries.last_searched(transaction, _conditions(caller, job_filter, after), search_limit=MAX_SEARCHED)
    if last is None or last.jobs < MAX_SEARCHED:
        return JobPage(jobs)
    return JobPage(jobs, JobCursor(last.created_at, last.id))


def _conditions(caller: Caller, job_filter: JobFilter, after: JobCursor | None) -> JobConditions:
    return JobConditions(
        caller,
        states=job_filter.states,
        kind=None if job_filter.kind is None else storable_text(job_filter.kind),
        created_from=job_filter.created_from,
        created_to=job_filter.created_to,
        after=None if after is None else (after.created_at, after.id),
    )


def _patterns(text: str) -> SearchPatterns:
    """A text as patterns: its wildcards are letters like others, and the hyphens of an id may be there or not."""
    digits = text.replace("-", "").lower()
    is_id = _DIGITS.fullmatch(digits) is not None
    return SearchPatterns(
        text="%" + _WILD.sub(r"\\\1", text) + "%",
        first_digits=f"{digits}%" if is_id else None,
        last_digits=f"%{digits}" if is_id else None,
    )


def history(transaction: Transaction, job_id: UUID, *, after: int = 0, limit: int | None = None) -> list[HistoryEntry]:
    """A job's history behind line ``after``: the next ``limit`` lines, or all of them."""
    size = HISTORY_PAGE if limit is None else limit
    _require_page(after, size)
    lines: list[HistoryEntry] = []
    while True:
        page = queries.history_of(transaction, job_id, after=lines[-1].sequence if lines else after, limit=size)
        lines += map(history_entry_from, page)
        if limit is not None or len(page) < size:
            return lines


def last_change_to(transaction: Transaction, job_id: UUID, state: JobState) -> HistoryEntry | None:
    """The last line of a job's history that leads to this state, if there is one."""
    row = queries.last_change_to(transaction, job_id, state)
    return None if row is None else history_entry_from(row)


def items(
    transaction: Transaction,
    job_id: UUID,
    *,
    statuses: Iterable[ItemStatus] | None = None,
    after: int = 0,
    limit: int = 1000,
) -> list[Item]:
    """A page of a job's items behind position ``after``."""
    _require_page(after, limit)
    status_list = None if statuses is None else list(statuses)
    return [item_from(row) for row in queries.items_of(transaction, job_id, status_list, after=after, limit=limit)]


def _require_page(after: int, limit: int) -> None:
    bounds.AFTER.require(after)
    bounds.LIMIT.require(limit)


def stack_trace(transaction: Transaction, job_id: UUID) -> str | None:
    """Where in its code the last step or item of a job failed, if it says so."""
    return queries.trace_of(transaction, job_id)


def count_by_state(transaction: Transaction) -> dict[tuple[str, JobState], int]:
    """How many jobs there are of each kind in each state."""
    return {(row.kind, JobState(row.state)): row.jobs for row in queries.count_by_state(transaction)}


def any_in_flight(transaction: Transaction, kinds: Sequence[str]) -> bool:
    """Is there a job of one of these kinds that waits or runs?"""
    return queries.any_in_flight(transaction, list(kinds))


def marks(transaction: Transaction, job_ids: Iterable[UUID]) -> dict[UUID, tuple[datetime, int]]:
    """For each of these jobs something that changes whenever the job does; for whoever watches many of them."""
    return {mark.id: (mark.updated_at, mark.event_sequence) for mark in queries.marks_of(transaction, list(job_ids))}
