"""The queue of each kind: which jobs are due, when the next one of each priority is, and which priorities there are.

The queue is the index ``ix_jobs_next_claim``: kind, priority from the highest down, time of the next claim. Every query
here reads one range of it for each priority. A query that named the kind alone would step over all entries between two
priorities: the claims that are still to come and, on PostgreSQL, the entries of finished jobs that somebody's old
snapshot keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
)

from penstock.lifecycle.payloads import JSON
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.queries.visibility import by_id, by_ids
from penstock.store.tables import jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Moment

_OF_KIND = jobs.c.kind == bindparam("kind")
_IN_LINE = _OF_KIND & jobs.c.next_claim_at.is_not(None)
_IN_ORDER = (jobs.c.priority.desc(), jobs.c.next_claim_at)
_LIMIT: ColumnElement[int] = bindparam("limit", type_=Integer)
_LITERAL_ONE = literal_column("1", Integer)
"""A limit that the planner can see; of a parameter it expects a tenth of all rows."""


class PickedJob(NamedTuple):
    """What a claim has to know of a job."""

    id: UUID
    state: str
    user_id: str | None
    run: int
    params: JSON
    last_claimed: int
    last_claimable: int
    returned_items: int
    max_retries: int
    single_step: bool
    has_followers: bool


_PICKED_COLUMNS = tuple(jobs.c[name] for name in PickedJob._fields)


def not_before_now(dialect: Dialect, turn: ColumnElement[Any]) -> ColumnElement[Any]:
    """The time of a next claim as it is written: a past one is now, so that no job is queued behind a look."""
    return case((turn < dialect.now(), dialect.now()), else_=turn)


def pick_jobs(transaction: Transaction, kind: str, limit: int, *, job_id: UUID | None = None) -> list[PickedJob]:
    """The due jobs of a kind, or the named one, locked; what others have locked is left out."""
    parameters = {"kind": kind, "limit": limit, "job_id": job_id}
    return transaction.fetch(PickedJob, _pick_jobs(transaction.dialect, by_job=job_id is not None), parameters)


@built_once
def _pick_jobs(dialect: Dialect, *, by_job: bool) -> Select[Any]:
    condition = by_id() if by_job else jobs.c.priority.in_(select(priorities_in_line().c.priority))
    return (
        select(*_PICKED_COLUMNS)
        .where(_OF_KIND, condition, jobs.c.next_claim_at <= dialect.now())
        .order_by(*_IN_ORDER)
        .limit(_LIMIT)
        .with_for_update(skip_locked=True, key_share=True)
    )


class NextTurn(NamedTuple):
    """When the next job is due, None when the queue is empty; and the time."""

    next_claim_at: datetime | None
    now: datetime


def next_turn(transaction: Transaction, kind: str, *, job_id: UUID | None = None) -> NextTurn:
    """When the next job of a kind is due, or the named one."""
    statement = _next_turn(transaction.dialect, by_job=job_id is not None)
    [turn] = transaction.fetch(NextTurn, statement, {"kind": kind, "job_id": job_id})
    return turn


@built_once
def _next_turn(dialect: Dialect, *, by_job: bool) -> Select[Any, Any]:
    now = dialect.now().label("now")
    if by_job:
        soonest = select(jobs.c.next_claim_at).where(_IN_LINE, by_id()).scalar_subquery()
        return select(soonest.label("next_claim_at"), now)
    priorities = priorities_in_line()
    first = _first_turn(priorities.c.priority, jobs.c.next_claim_at.is_not(None))
    return select(func.min(first).label("next_claim_at"), now).select_from(priorities)


def count_claimable(transaction: Transaction, kind: str, *, jobs_limit: int) -> int:
    """About how many items the due jobs of a kind hand out, as far as the first so many jobs tell; locks nothing.

    Those that came back count, though some of them may be due a little later.
    """
    count = transaction.value(int, _count_claimable(transaction.dialect), {"kind": kind, "limit": jobs_limit})
    return count or 0


@built_once
def _count_claimable(dialect: Dialect) -> Select[Any]:
    handed_out = jobs.c.last_claimable - jobs.c.last_claimed + jobs.c.returned_items
    due = (
        select(handed_out.label("items"))
        .where(_OF_KIND, jobs.c.priority.in_(select(priorities_in_line().c.priority)))
        .where(jobs.c.next_claim_at <= dialect.now())
        .limit(_LIMIT)
        .subquery()
    )
    return select(cast(func.sum(due.c["items"]), BigInteger))


def priorities(transaction: Transaction, kind: str) -> list[int]:
    """The priorities in the queue."""
    return transaction.values(int, _priorities(transaction.dialect), {"kind": kind})


@built_once
def _priorities(_: Dialect) -> Select[Any]:
    priorities = priorities_in_line()
    return select(priorities.c.priority).where(priorities.c.priority.is_not(None))


def priorities_in_line() -> CTE:
    """From the highest down, each found by one step into the index; the last is null. The kind is ``kind``."""
    priorities = select(func.max(jobs.c.priority).label("priority")).where(_IN_LINE).cte("priorities", recursive=True)
    following = (
        select(func.max(jobs.c.priority)).where(_IN_LINE, jobs.c.priority < priorities.c.priority).scalar_subquery()
    )
    return priorities.union_all(select(following).where(priorities.c.priority.is_not(None)))


def _first_turn(priority: ColumnElement[Any], turn: ColumnElement[bool]) -> ColumnElement[Any]:
    return (
        select(jobs.c.next_claim_at)
        .where(_OF_KIND, jobs.c.priority == priority, turn)
        .order_by(jobs.c.next_claim_at)
        .limit(_LITERAL_ONE)
        .scalar_subquery()
    )


# Looking from a moment on, on a database server -----------------------------------------------------------------------


class Look(NamedTuple):
    """Where a claim looks: at one priority, from a moment on."""

    priority: int
    since: datetime


class WideLook(NamedTuple):
    """The same, and which priority is the next above it: those between them are not known yet."""

    priority: int
    since: datetime
    above: int


_LOOKS = HandedRows("looks", Look, priority=Integer(), since=Moment())
_WIDE_LOOKS = HandedRows("looks", WideLook, priority=Integer(), since=Moment(), above=Integer())

JOB = jobs.alias("j")
"""A short name: what is asked here is part of a claim, of which the driver remembers 4,096 characters."""
VERSION: ColumnElement[Any] = literal_column("j.xmin")
"""Changes with each change of the row."""


def due_jobs(dialect: Dialect, *columns: ColumnElement[Any]) -> Select[Any]:
    """The given columns of the jobs whose turn it is, locked, found by looks; what others have locked is left out.

    There is no ORDER BY around the looks: they come in the order of the array and each one's jobs in the order of the
    index, one by one until there are enough. A sort would lock everything that is due.
    """
    job = JOB.c
    looks = _LOOKS.table(dialect)
    due = (
        select(*columns)
        .where(job.kind == bindparam("kind"), job.priority == looks.c.priority)
        .where(job.next_claim_at >= looks.c.since, job.next_claim_at <= dialect.now())
        .order_by(job.next_claim_at)
        .limit(_LIMIT)
        .with_for_update(skip_locked=True, key_share=True)
        .correlate(looks)
        .lateral("found")
    )
    return select(*due.c).select_from(looks, due).limit(_LIMIT)


def due_parameters(dialect: Dialect, kind: str, looks: Sequence[Look], limit: int) -> dict[str, Any]:
    """The parameters of :func:`due_jobs`; the looks are from the highest priority down."""
    return {"kind": kind, "limit": limit, **_LOOKS.parameters(dialect, looks)}


def lock_due(transaction: Transaction, kind: str, looks: Sequence[Look], limit: int) -> list[UUID]:
    """The ids of the due jobs, locked."""
    parameters = due_parameters(transaction.dialect, kind, looks, limit)
    return transaction.values(UUID, _lock_due(transaction.dialect), parameters)


@built_once
def _lock_due(dialect: Dialect) -> Select[Any]:
    return due_jobs(dialect, JOB.c.id)


def picked_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> list[PickedJob]:
    """What a claim has to know of the jobs it has locked, in the order of the queue."""
    return transaction.fetch(PickedJob, _picked_jobs(transaction.dialect), {"job_ids": job_ids})


@built_once
def _picked_jobs(dialect: Dialect) -> Select[Any]:
    return select(*_PICKED_COLUMNS).where(by_ids(dialect)).order_by(*_IN_ORDER)


class FirstTurn(NamedTuple):
    """What a look has seen at one priority, and when that was."""

    priority: int
    first: datetime | None
    """The first due time in the queue."""
    unheard: int | None
    """The highest priority above it that was not known."""
    now: datetime
    number: int
    """Of this transaction: those that wrote before it have a lower one."""
    oldest: int
    """The lowest number of a transaction that had not ended: those below it are all in the answer."""
    microseconds: int
    """How long the database has taken until this row."""


def first_turns(transaction: Transaction, kind: str, looks: Sequence[WideLook]) -> list[FirstTurn]:
    """For each look, from the highest priority down, what is queued there; at least one look is given.

    A plain read: jobs that somebody has locked count, because they are in line again if that transaction is undone.
    """
    parameters = {"kind": kind, **_WIDE_LOOKS.parameters(transaction.dialect, looks)}
    return transaction.fetch(FirstTurn, _first_turns(transaction.dialect), parameters)


@built_once
def _first_turns(dialect: Dialect) -> Select[Any]:
    looks = _WIDE_LOOKS.table(dialect)
    # Not IS NOT NULL as well, which this implies: where nothing was in line when the table was analyzed, the planner
    # then expects no row from a scan of the whole table, and a third of all from the index.
    first = _first_turn(looks.c.priority, jobs.c.next_claim_at >= looks.c.since)
    unheard = (
        select(jobs.c.priority)
        .where(_IN_LINE, jobs.c.priority > looks.c.priority, jobs.c.priority < looks.c.above)
        .order_by(jobs.c.priority.desc())
        .limit(_LITERAL_ONE)
        .scalar_subquery()
    )
    number: ColumnElement[Any] = literal_column("pg_current_xact_id()")
    oldest: ColumnElement[Any] = literal_column("pg_snapshot_xmin(pg_current_snapshot())")
    took: ColumnElement[Any] = literal_column("extract(microseconds FROM clock_timestamp() - statement_timestamp())")
    return select(
        looks.c.priority,
        first.label("first"),
        unheard.label("unheard"),
        dialect.now().label("now"),
        cast(cast(number, Text), BigInteger).label("number"),
        cast(cast(oldest, Text), BigInteger).label("oldest"),
        cast(took, BigInteger).label("microseconds"),
    )
