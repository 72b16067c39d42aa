"""What a claim writes about the jobs it serves; on PostgreSQL in the one statement that also takes their items."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    FromClause,
    Integer,
    Update,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    null,
    select,
    update,
)

from penstock.lifecycle.callers import worker
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ItemRole, ItemStatus, JobState, Phase
from penstock.lifecycle.transitions import START
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.change_state import ChangedJob, change_state, made_by, tell_of
from penstock.store.queries.claim import TAKEN_COLUMNS, NewLease, lease_values
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.queries.line import JOB, VERSION, Look, due_jobs, due_parameters, not_before_now
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, Moment

_PENDING = ItemStatus.PENDING.value
_JOB_NUMBER, _IN_ORDER = attrgetter("job_number"), attrgetter("job_number", "position")
_ROLES = {role.value: role for role in ItemRole}
_LITERAL_ZERO, _LITERAL_ONE = (literal_column(number, Integer) for number in ("0", "1"))
"""Written out: a statement of a claim has to be short."""


class ServedJob(NamedTuple):
    """What a claim has taken from a job, and when its next turn is if it has nothing more to hand out now."""

    id: UUID
    last_claimed: int
    returned_taken: int
    has_more: bool
    next_claim_at: datetime | None


_SERVED_JOBS = HandedRows(
    "served",
    ServedJob,
    id=Identifier(),
    last_claimed=Integer(),
    returned_taken=Integer(),
    has_more=Boolean(),
    next_claim_at=Moment(),
)


def start_served(transaction: Transaction, served_jobs: Sequence[ServedJob]) -> list[ChangedJob]:
    """START for the queued jobs among those served."""
    parameters = _SERVED_JOBS.parameters(transaction.dialect, served_jobs)
    return transaction.fetch(ChangedJob, _start_served(transaction.dialect), parameters)


@built_once
def _start_served(dialect: Dialect) -> Update:
    rows = _SERVED_JOBS.table(dialect)
    return _start(dialect, rows, _served_in_steps(dialect, rows))


def note_served(transaction: Transaction, served_jobs: Sequence[ServedJob]) -> None:
    """The same for jobs that run already."""
    transaction.execute(_note_served(transaction.dialect), _SERVED_JOBS.parameters(transaction.dialect, served_jobs))


@built_once
def _note_served(dialect: Dialect) -> Update:
    rows = _SERVED_JOBS.table(dialect)
    return _note(dialect, rows, _served_in_steps(dialect, rows))


def _served_values(dialect: Dialect, rows: FromClause, otherwise: ColumnElement[Any]) -> dict[str, Any]:
    """A job that still has items to hand out goes to the back of the line; one that has none leaves it."""
    return {
        "last_claimed": rows.c.last_claimed,
        "next_claim_at": case((rows.c.has_more, dialect.now()), else_=otherwise),
        "last_heartbeat": dialect.now(),
    }


def _served_in_steps(dialect: Dialect, rows: FromClause) -> dict[str, Any]:
    """The same where items came back: some were taken, and for others the job's turn is known."""
    returned_items = jobs.c.returned_items - rows.c.returned_taken
    return _served_values(dialect, rows, not_before_now(dialect, rows.c.next_claim_at)) | {
        "returned_items": returned_items
    }


def _start(dialect: Dialect, rows: FromClause, values: dict[str, Any], *conditions: ColumnElement[bool]) -> Update:
    phase = case((jobs.c.last_claimable > jobs.c.total_items, Phase.FINALIZING.value), else_=Phase.PROCESSING.value)
    return change_state(
        dialect,
        START,
        and_(jobs.c.id == rows.c.id, *conditions),
        values
        | {
            "attempts": jobs.c.attempts + 1,
            "phase": case((jobs.c.planned, phase), else_=Phase.BATCHING.value),
        },
    )


def _note(dialect: Dialect, rows: FromClause, values: dict[str, Any], *conditions: ColumnElement[bool]) -> Update:
    return (
        update(jobs)
        .where(jobs.c.id == rows.c.id, *conditions, dialect.check(jobs.c.state == JobState.RUNNING.value))
        .values(values | {"updated_at": dialect.now()})
    )


# A whole claim in one statement, where a statement can be so large (PostgreSQL) ---------------------------------------


class JobOfClaim(NamedTuple):
    """What the items taken from one job have in common: a JSON array of these, in this order."""

    id: str
    user_id: str | None
    run: int
    max_retries: int
    single_step: bool
    last_claimable: int
    state: str
    params: JSON


class ClaimedRow(NamedTuple):
    """An item taken by a whole claim. The first of each job brings the values of its :class:`JobOfClaim`."""

    id: int
    role: str
    position: int
    attempts: int
    input_json: JSON
    normalized_json: JSON
    job_number: int
    job: Sequence[JSON] | None


class WholeClaim(NamedTuple):
    """What one statement took."""

    items: list[ClaimedItem]
    """In the order of their jobs and positions."""
    any_more: bool
    """Has any of their jobs more?"""
    started_jobs: list[UUID]
    """The jobs that have begun with it."""


def claim_in_one_statement(
    transaction: Transaction, kind: str, looks: Sequence[Look], limit: int, lease: NewLease
) -> WholeClaim:
    """Pick jobs, lock them, take a stretch of each, START those that wait and write their history.

    All of it or nothing: where one of the jobs asks for more (items that came back, followers), or was changed after
    the statement's view of the items was taken, no job is served and nothing taken.
    """
    due = due_parameters(transaction.dialect, kind, looks, limit)
    parameters = lease._asdict() | due | made_by(worker(lease.worker))
    rows = transaction.fetch(ClaimedRow, _claim_in_one_statement(transaction.dialect), parameters)
    claim = WholeClaim([], False, [])
    any_more = False
    for _, rows_of_job in groupby(sorted(rows, key=_IN_ORDER), _JOB_NUMBER):
        items_of_job = list(rows_of_job)
        job = JobOfClaim._make(items_of_job[0].job or ())
        job_id, user_id, run, max_retries, params, single_step = (
            UUID(job.id), job.user_id, job.run, job.max_retries, job.params, job.single_step,
        )  # fmt: skip
        any_more = any_more or items_of_job[-1].position < job.last_claimable
        if job.state != JobState.RUNNING:
            claim.started_jobs.append(job_id)
        claim.items.extend(
            ClaimedItem(
                item_id, job_id, kind, user_id, run, _ROLES[role], position, attempts, max_retries,
                params if single_step else item_input, params, lease.lease, normalized,
            )
            for item_id, role, position, attempts, item_input, normalized, _, _ in items_of_job
        )  # fmt: skip
    return claim._replace(any_more=any_more)


@built_once
def _claim_in_one_statement(dialect: Dialect) -> Update:
    job = JOB.c
    due = due_jobs(dialect, job.id, VERSION.label("version")).cte("due")
    how_many = func.count().over()
    size = func.greatest(_LITERAL_ONE, bindparam("limit", type_=Integer) // how_many)
    data = func.jsonb_build_array(*(job[name] for name in JobOfClaim._fields))
    # A job that was changed meanwhile is locked in a version that this join does not see, and then one is missing.
    complete = how_many == select(func.count()).select_from(due).scalar_subquery()
    share = (
        select(
            job.id,
            (job.last_claimed + _LITERAL_ONE).label("first"),
            func.least(job.last_claimed + size, job.last_claimable).label("last_claimed"),
            (job.last_claimed + size < job.last_claimable).label("has_more"),
            func.row_number().over().label("number"),
            data.label("job"),
            (func.bool_and(_is_plain(JOB)).over() & complete).label("served"),
        )
        .select_from(due.join(JOB, (job.id == due.c.id) & (due.c.version == VERSION)))
        .cte("share")
    )
    values = _served_values(dialect, share, null())
    event_rows = tell_of(dialect, _start(dialect, share, values, share.c.served), START).cte("told")
    noted_jobs = _note(dialect, share, values, share.c.served).cte("noted")
    return (
        update(job_items)
        .where(
            share.c.served,
            job_items.c.job_id == share.c.id,
            job_items.c.position.between(share.c.first, share.c.last_claimed),
            dialect.check(job_items.c.status == _PENDING),
        )
        .values(lease_values(dialect))
        .returning(
            *TAKEN_COLUMNS,
            share.c.number.label("job_number"),
            case((job_items.c.position == share.c.first, share.c.job), else_=null()).label("job"),
        )
        .add_cte(event_rows, noted_jobs)
    )


def _is_plain(job: FromClause) -> ColumnElement[bool]:
    """Is taking the next stretch all there is to do for a job?"""
    begins = (job.c.state == JobState.QUEUED.value) & ~job.c.has_followers
    return (begins | (job.c.state == JobState.RUNNING.value)) & (job.c.returned_items == _LITERAL_ZERO)
