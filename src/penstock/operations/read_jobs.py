"""Looking: a job, a page of jobs, its items, its history.

**A search** reads what it looks through, so it has a bound: one page looks through the next ``MOST_SEARCHED`` jobs of
the list and no further. Where these are used up before the page is full, the page is short, or even empty, and still
has a place to go on from: behind the last job that was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from penstock.errors import InvalidInput, JobNotFound
from penstock.lifecycle import bounds
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import HistoryEntry, Item, Job
from penstock.lifecycle.payloads import storable_text
from penstock.lifecycle.states import ItemStatus, JobState
from penstock.store.engine import Transaction
from penstock.store.rows import history_entry_from, item_from, job_from
from penstock.store.statements import read_jobs as statements

MOST_SEARCHED = 20_000
HISTORY_PAGE = 1_000
"""So many lines of a history are read at a time."""
LONGEST_SEARCH = 255
_WHOLE = 32
_DIGITS = re.compile("[0-9a-f]{4,32}")
_WILD = re.compile(r"([\\%_])")


def not_found(job_id: UUID) -> JobNotFound:
    """The same words whether there is no such job or it belongs to somebody else."""
    return JobNotFound(f"there is no job {job_id}")


def get_job(transaction: Transaction, job_id: UUID, caller: Caller) -> Job:
    """One job as it stands now."""
    named = {"the_job_id": job_id, "the_caller_id": caller.id}
    row = transaction.run(statements.job_by_id(transaction.dialect, caller.sight), named).one_or_none()
    if row is None:
        raise not_found(job_id)
    return job_from(row)


@dataclass(frozen=True, slots=True)
class JobCursor:
    """The place in a listing behind which the next page begins."""

    created_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are wanted."""

    states: tuple[JobState, ...] | None = None
    kind: str | None = None
    search: str | None = None
    """In the title, the kind, the owner or the error code, or how the id begins or ends (4 digits or more)."""
    created_from: datetime | None = None
    created_to: datetime | None = None
    """Before then."""

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
    wanted: JobFilter = ALL_JOBS,
    *,
    after: JobCursor | None = None,
    limit: int = 100,
    payloads: bool = False,
) -> list[Job]:
    """A page of jobs, newest first, without their payloads unless those are wanted."""
    asked, parameters = _question(caller, wanted, after)
    bounds.LIMIT.require(limit)
    parameters["the_limit"] = limit
    if wanted.text is None:
        statement = statements.list_jobs(transaction.dialect, caller.sight, asked, payloads=payloads)
    else:
        parameters |= _searched(wanted.text)
        statement = statements.search_jobs(transaction.dialect, caller.sight, asked, payloads=payloads)
    return [job_from(row) for row in transaction.run(statement, parameters)]


def page_of_jobs(
    transaction: Transaction,
    caller: Caller,
    wanted: JobFilter = ALL_JOBS,
    *,
    after: JobCursor | None = None,
    limit: int = 100,
    payloads: bool = False,
) -> JobPage:
    """A page of jobs and the place behind it; see above for what that is in a search."""
    if wanted.whole_id is not None and after is None:
        # However old it is: nobody should have to page to a job they can name.
        asked, parameters = _question(caller, wanted, None)
        parameters |= {"the_job_id": wanted.whole_id, "the_limit": 1}
        named = statements.list_jobs(transaction.dialect, caller.sight, replace(asked, id=True), payloads=payloads)
        found = transaction.run(named, parameters).one_or_none()
        if found is not None:
            return JobPage([job_from(found)])
    jobs = list_jobs(transaction, caller, wanted, after=after, limit=limit, payloads=payloads)
    if len(jobs) == limit:
        return JobPage(jobs, JobCursor(jobs[-1].created_at, jobs[-1].id))
    if wanted.text is None:
        return JobPage(jobs)
    asked, parameters = _question(caller, wanted, after)
    statement = statements.last_searched(transaction.dialect, caller.sight, asked)
    last = transaction.run(statement, parameters | {"the_searched": MOST_SEARCHED}).one_or_none()
    if last is None or last.count < MOST_SEARCHED:
        return JobPage(jobs)
    return JobPage(jobs, JobCursor(last.created_at, last.id))


def _question(caller: Caller, wanted: JobFilter, after: JobCursor | None) -> tuple[statements.Asked, dict[str, Any]]:
    """Which conditions there are, and their values."""
    parameters: dict[str, Any] = {"the_caller_id": caller.id}
    if wanted.states is not None:
        parameters |= {f"the_state_{number}": state.value for number, state in enumerate(wanted.states)}
    if wanted.kind is not None:
        parameters["the_kind"] = storable_text(wanted.kind)
    if wanted.created_from is not None:
        parameters["the_created_from"] = wanted.created_from
    if wanted.created_to is not None:
        parameters["the_created_to"] = wanted.created_to
    if after is not None:
        parameters |= {"the_after": after.created_at, "the_after_id": after.id}
    asked = statements.Asked(
        states=None if wanted.states is None else len(wanted.states),
        kind=wanted.kind is not None,
        created_from=wanted.created_from is not None,
        created_to=wanted.created_to is not None,
        after=after is not None,
    )
    return asked, parameters


def _searched(text: str) -> dict[str, Any]:
    """A text as patterns: its wildcards are letters like others, and the hyphens of an id may be there or not."""
    digits = text.replace("-", "").lower()
    is_id = _DIGITS.fullmatch(digits) is not None
    return {
        "the_searched": MOST_SEARCHED,
        "the_pattern": "%" + _WILD.sub(r"\\\1", text) + "%",
        "the_first_digits": f"{digits}%" if is_id else None,
        "the_last_digits": f"%{digits}" if is_id else None,
    }


def history(transaction: Transaction, job_id: UUID, *, after: int = 0, limit: int | None = None) -> list[HistoryEntry]:
    """A job's history behind line ``after``: the next ``limit`` lines, or all of them."""
    size = HISTORY_PAGE if limit is None else limit
    _require_page(after, size)
    lines: list[HistoryEntry] = []
    while True:
        asked = {"the_job_id": job_id, "the_after": lines[-1].sequence if lines else after, "the_limit": size}
        page = transaction.run(statements.history_of(transaction.dialect), asked).all()
        lines += map(history_entry_from, page)
        if limit is not None or len(page) < size:
            return lines


def last_change_to(transaction: Transaction, job_id: UUID, state: JobState) -> HistoryEntry | None:
    """The last line of a job's history that leads to this state, if there is one."""
    asked = {"the_job_id": job_id, "the_state": state.value}
    row = transaction.run(statements.last_change_to(transaction.dialect), asked).one_or_none()
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
    parameters: dict[str, Any] = {"the_job_id": job_id, "the_after": after, "the_limit": limit}
    if statuses is not None:
        parameters["the_statuses"] = [status.value for status in statuses]
    statement = statements.items_of(transaction.dialect, statuses=statuses is not None)
    return [item_from(row) for row in transaction.run(statement, parameters)]


def _require_page(after: int, limit: int) -> None:
    bounds.AFTER.require(after)
    bounds.LIMIT.require(limit)


def stack_trace(transaction: Transaction, job_id: UUID) -> str | None:
    """Where in its code the last step or item of a job failed, if it says so."""
    text: str | None = transaction.run(statements.trace_of(transaction.dialect), {"the_job_id": job_id}).scalar()
    return text


def count_by_state(transaction: Transaction) -> dict[tuple[str, JobState], int]:
    """How many jobs there are of each kind in each state."""
    rows = transaction.run(statements.count_by_state(transaction.dialect))
    return {(kind, JobState(state)): count for kind, state, count in rows}


def any_in_flight(transaction: Transaction, kinds: Sequence[str]) -> bool:
    """Is there a job of one of these kinds that waits or runs?"""
    named = {"the_kinds": list(kinds)}
    return transaction.run(statements.any_in_flight(transaction.dialect), named).scalar() is not None


def marks(transaction: Transaction, job_ids: Iterable[UUID]) -> dict[UUID, tuple[datetime, int]]:
    """For each of these jobs something that changes whenever the job does; for whoever watches many of them."""
    rows = transaction.run(statements.marks_of(transaction.dialect), {"the_jobs": list(job_ids)})
    return {row.id: (row.updated_at, row.event_sequence) for row in rows}
