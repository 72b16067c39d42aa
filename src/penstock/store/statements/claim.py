"""What a claim writes: which items it takes, and when each job's next turn is; whose turn it is: ``line``."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    Integer,
    Select,
    String,
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

from penstock.lifecycle.states import ItemStatus, JobState, Phase
from penstock.lifecycle.transitions import START
from penstock.store.dialects.contract import Dialect, Field
from penstock.store.queries.built_once import built_once
from penstock.store.statements.change_state import change_state, tell_of
from penstock.store.statements.line import JOB, VERSION, due_jobs, not_before_now
from penstock.store.tables import job_items, jobs
from penstock.store.types import Identifier, Moment

_PENDING = ItemStatus.PENDING.value
_NONE, _ONE = (literal_column(number, Integer) for number in ("0", "1"))
"""Written out: a statement of a claim has to be short."""


def _taken(dialect: Dialect) -> dict[str, Any]:
    """What taking an item writes: the lease is the fence of everything that is written about it later."""
    now = dialect.now()
    return {
        "status": ItemStatus.PROCESSING.value,
        "attempts": job_items.c.attempts + 1,
        "lease": bindparam("the_lease", type_=Identifier),
        "locked_by": bindparam("the_worker", type_=String),
        "locked_at": now,
        "lock_expires_at": dialect.later(now, bindparam("the_lease_seconds", type_=Float)),
        "ready_at": null(),
        "updated_at": now,
    }


_TAKEN_OF_ONE = (
    job_items.c.id,
    job_items.c.role,
    job_items.c.position,
    job_items.c.attempts,
    job_items.c.input_json,
    job_items.c.normalized_json,
)
_TAKEN = (*_TAKEN_OF_ONE, job_items.c.job_id)

RANGES = (Field("job_id", Identifier()), Field("first", Integer()), Field("last", Integer()))


@built_once
def take_fresh_of_one(dialect: Dialect) -> Update:
    """Take the items of one job between two positions."""
    return (
        update(job_items)
        .where(
            job_items.c.job_id == bindparam("the_job_id", type_=Identifier),
            job_items.c.position.between(bindparam("the_first", type_=Integer), bindparam("the_last", type_=Integer)),
            dialect.check(job_items.c.status == _PENDING),
        )
        .values(_taken(dialect))
        .returning(*_TAKEN_OF_ONE, null())
    )


@built_once
def take_fresh(dialect: Dialect) -> Update:
    """Take the items of several jobs, each between two positions."""
    ranges = dialect.rows("ranges", RANGES)
    return (
        update(job_items)
        .where(
            job_items.c.job_id == ranges.c.job_id,
            job_items.c.position >= ranges.c.first,
            job_items.c.position <= ranges.c.last,
            dialect.check(job_items.c.status == _PENDING),
        )
        .values(_taken(dialect))
        .returning(*_TAKEN)
    )


@built_once
def returned_items(dialect: Dialect) -> Select[Any]:
    """Items of the picked jobs that came back and may be tried again, those that waited longest first."""
    return (
        select(job_items.c.id, job_items.c.deaths)
        .where(
            dialect.among(job_items.c.job_id, "the_jobs"),
            job_items.c.status == _PENDING,
            job_items.c.ready_at <= dialect.now(),
        )
        .order_by(job_items.c.ready_at)
        .limit(bindparam("the_limit", type_=Integer))
        .with_for_update(skip_locked=True)
    )


@built_once
def take_returned(dialect: Dialect) -> Update:
    """Take items that came back, by their ids."""
    return (
        update(job_items)
        .where(dialect.among(job_items.c.id, "the_items"), job_items.c.status == _PENDING)
        .values(_taken(dialect))
        .returning(*_TAKEN)
    )


@built_once
def soonest_returned(dialect: Dialect) -> Select[Any]:
    """When the first of the items that are still to come back may be tried, by job."""
    return (
        select(job_items.c.job_id, func.min(job_items.c.ready_at))
        .where(
            dialect.among(job_items.c.job_id, "the_jobs"),
            job_items.c.status == _PENDING,
            job_items.c.ready_at.is_not(None),
        )
        .group_by(job_items.c.job_id)
    )


SERVED = (
    Field("id", Identifier()),
    Field("last_claimed", Integer()),
    Field("returned_taken", Integer()),
    Field("more", Boolean()),
    Field("next_claim_at", Moment()),
)


def _served(dialect: Dialect, rows: Any, otherwise: Any) -> dict[str, Any]:
    """A job that still has items to hand out goes to the back of the line; one that has none leaves it."""
    return {
        "last_claimed": rows.c.last_claimed,
        "next_claim_at": case((rows.c.more, dialect.now()), else_=otherwise),
        "last_heartbeat": dialect.now(),
    }


def _served_in_steps(dialect: Dialect, rows: Any) -> dict[str, Any]:
    """The same where items came back: some were taken, and for others the job's turn is known."""
    left = jobs.c.returned_items - rows.c.returned_taken
    return _served(dialect, rows, not_before_now(dialect, rows.c.next_claim_at)) | {"returned_items": left}


def _start(dialect: Dialect, rows: Any, served: dict[str, Any], *conditions: ColumnElement[bool]) -> Update:
    phase = case((jobs.c.last_claimable > jobs.c.total_items, Phase.FINALIZING.value), else_=Phase.PROCESSING.value)
    return change_state(
        dialect,
        START,
        and_(jobs.c.id == rows.c.id, *conditions),
        served
        | {
            "attempts": jobs.c.attempts + 1,
            "phase": case((jobs.c.planned, phase), else_=Phase.BATCHING.value),
        },
    )


def _note(dialect: Dialect, rows: Any, served: dict[str, Any], *conditions: ColumnElement[bool]) -> Update:
    return (
        update(jobs)
        .where(jobs.c.id == rows.c.id, *conditions, dialect.check(jobs.c.state == JobState.RUNNING.value))
        .values(served | {"updated_at": dialect.now()})
    )


@built_once
def start_served(dialect: Dialect) -> Update:
    """START for the queued jobs among those served."""
    rows = dialect.rows("served", SERVED)
    return _start(dialect, rows, _served_in_steps(dialect, rows))


@built_once
def note_served(dialect: Dialect) -> Update:
    """The same for jobs that run already."""
    rows = dialect.rows("served", SERVED)
    return _note(dialect, rows, _served_in_steps(dialect, rows))


# A whole claim in one statement, where a statement can be so large (PostgreSQL) ---------------------------------------


def _plain(job: Any) -> Any:
    """Is taking the next stretch all there is to do for a job?"""
    begins = (job.state == JobState.QUEUED.value) & ~job.has_followers
    return (begins | (job.state == JobState.RUNNING.value)) & (job.returned_items == _NONE)


@built_once
def claim_at_once(dialect: Dialect) -> Update:
    """Pick jobs, lock them, take a stretch of each, START those that wait and write their history.

    All of it or nothing: where one of the jobs asks for more (items that came back, followers), or was changed after
    the statement's view of the items was taken, no job is served and no row returned. Each job's data come with its
    first item only.
    """
    one = JOB.c
    due = due_jobs(dialect, one.id, VERSION.label("version")).cte("due")
    how_many = func.count().over()
    share = func.greatest(_ONE, bindparam("the_limit", type_=Integer) // how_many)
    data = func.jsonb_build_array(
        one.id, one.user_id, one.run, one.max_retries, one.single_step, one.last_claimable, one.params
    )
    # A job that was changed meanwhile is locked in a version that this join does not see, and then one is missing.
    complete = how_many == select(func.count()).select_from(due).scalar_subquery()
    ranges = (
        select(
            one.id,
            (one.last_claimed + _ONE).label("first"),
            func.least(one.last_claimed + share, one.last_claimable).label("last_claimed"),
            (one.last_claimed + share < one.last_claimable).label("more"),
            func.row_number().over().label("number"),
            data.label("job"),
            (func.bool_and(_plain(one)).over() & complete).label("served"),
        )
        .select_from(due.join(JOB, (one.id == due.c.id) & (due.c.version == VERSION)))
        .cte("ranges")
    )
    served = _served(dialect, ranges, null())
    told = tell_of(dialect, _start(dialect, ranges, served, ranges.c.served), START).cte("told")
    noted = _note(dialect, ranges, served, ranges.c.served).cte("noted")
    return (
        update(job_items)
        .where(
            ranges.c.served,
            job_items.c.job_id == ranges.c.id,
            job_items.c.position.between(ranges.c.first, ranges.c.last_claimed),
            dialect.check(job_items.c.status == _PENDING),
        )
        .values(_taken(dialect))
        .returning(
            *_TAKEN_OF_ONE,
            ranges.c.number,
            case((job_items.c.position == ranges.c.first, ranges.c.job), else_=null()),
        )
        .add_cte(told, noted)
    )
