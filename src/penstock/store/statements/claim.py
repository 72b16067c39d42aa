"""What a claim asks: which jobs have their turn, which items to take, and when each job's next turn is."""

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
from penstock.store.dialects.contract import Field, Ways
from penstock.store.statements.built_once import built_once
from penstock.store.statements.change_state import change_state, tell_of
from penstock.store.statements.selecting import by_id
from penstock.store.tables import job_items, jobs
from penstock.store.types import Identifier, Moment

_PENDING = ItemStatus.PENDING.value


@built_once
def pick_jobs(ways: Ways, *, patient: bool, one: bool = False) -> Select[Any]:
    """The jobs of a kind whose turn it is (or ``one`` of them), locked; a patient claim waits for a lock instead of
    passing over it.
    """
    picked = (
        select(
            jobs.c.id,
            jobs.c.state,
            jobs.c.user_id,
            jobs.c.run,
            jobs.c.params,
            jobs.c.claimed_to,
            jobs.c.open_to,
            jobs.c.returned_items,
            jobs.c.max_retries,
            jobs.c.single_step,
            jobs.c.followed,
        )
        .where(jobs.c.kind == bindparam("the_kind"), jobs.c.turn_at <= ways.now())
        .order_by(jobs.c.priority.desc(), jobs.c.turn_at)
        .limit(bindparam("the_limit", type_=Integer))
        .with_for_update(skip_locked=not patient, key_share=True)
    )
    return picked.where(by_id()) if one else picked


@built_once
def next_turn(ways: Ways, *, one: bool = False) -> Select[Any, Any]:
    """Seconds until the next turn of any job of a kind (or of one): zero or less when it is due, null for none."""
    soonest = func.min(jobs.c.turn_at)
    asked = select(soonest, ways.now().label("now")).where(
        jobs.c.kind == bindparam("the_kind"), jobs.c.turn_at.is_not(None)
    )
    return asked.where(by_id()) if one else asked


def _taken(ways: Ways) -> dict[str, Any]:
    """What taking an item writes: the lease is the fence of everything that is written about it later."""
    now = ways.now()
    return {
        "status": ItemStatus.PROCESSING.value,
        "attempts": job_items.c.attempts + 1,
        "lease": bindparam("the_lease", type_=Identifier),
        "locked_by": bindparam("the_worker", type_=String),
        "locked_at": now,
        "lock_expires_at": ways.later(now, bindparam("the_lease_seconds", type_=Float)),
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
def take_fresh_of_one(ways: Ways) -> Update:
    """Take the items of one job between two positions."""
    return (
        update(job_items)
        .where(
            job_items.c.job_id == bindparam("the_job_id", type_=Identifier),
            job_items.c.position.between(bindparam("the_first", type_=Integer), bindparam("the_last", type_=Integer)),
            ways.check(job_items.c.status == _PENDING),
        )
        .values(_taken(ways))
        .returning(*_TAKEN_OF_ONE, null())
    )


@built_once
def take_fresh(ways: Ways) -> Update:
    """Take the items of several jobs, each between two positions."""
    ranges = ways.rows("ranges", RANGES)
    return (
        update(job_items)
        .where(
            job_items.c.job_id == ranges.c.job_id,
            job_items.c.position >= ranges.c.first,
            job_items.c.position <= ranges.c.last,
            ways.check(job_items.c.status == _PENDING),
        )
        .values(_taken(ways))
        .returning(*_TAKEN)
    )


@built_once
def returned_items(ways: Ways) -> Select[Any]:
    """Items of the picked jobs that came back and may be tried again, those that waited longest first."""
    return (
        select(job_items.c.id, job_items.c.deaths)
        .where(
            ways.among(job_items.c.job_id, "the_jobs"),
            job_items.c.status == _PENDING,
            job_items.c.ready_at <= ways.now(),
        )
        .order_by(job_items.c.ready_at)
        .limit(bindparam("the_limit", type_=Integer))
        .with_for_update(skip_locked=True)
    )


@built_once
def take_returned(ways: Ways) -> Update:
    """Take items that came back, by their ids."""
    return (
        update(job_items)
        .where(ways.among(job_items.c.id, "the_items"), job_items.c.status == _PENDING)
        .values(_taken(ways))
        .returning(*_TAKEN)
    )


@built_once
def soonest_returned(ways: Ways) -> Select[Any]:
    """When the first of the items that are still to come back may be tried, by job."""
    return (
        select(job_items.c.job_id, func.min(job_items.c.ready_at))
        .where(
            ways.among(job_items.c.job_id, "the_jobs"),
            job_items.c.status == _PENDING,
            job_items.c.ready_at.is_not(None),
        )
        .group_by(job_items.c.job_id)
    )


SERVED = (
    Field("id", Identifier()),
    Field("claimed_to", Integer()),
    Field("returned_taken", Integer()),
    Field("more", Boolean()),
    Field("turn_at", Moment()),
)


def _served(ways: Ways, rows: Any, otherwise: Any) -> dict[str, Any]:
    """A job that still has items to hand out goes to the back of the line; one that has none leaves it."""
    return {
        "claimed_to": rows.c.claimed_to,
        "turn_at": case((rows.c.more, ways.now()), else_=otherwise),
        "last_heartbeat": ways.now(),
    }


def _served_in_steps(ways: Ways, rows: Any) -> dict[str, Any]:
    """The same where items came back: some were taken, and for others the job's turn is known."""
    left = jobs.c.returned_items - rows.c.returned_taken
    return _served(ways, rows, rows.c.turn_at) | {"returned_items": left}


def _start(ways: Ways, rows: Any, served: dict[str, Any]) -> Update:
    phase = case((jobs.c.open_to > jobs.c.total_items, Phase.FINALIZING.value), else_=Phase.PROCESSING.value)
    return change_state(
        ways,
        START,
        jobs.c.id == rows.c.id,
        served
        | {
            "attempts": jobs.c.attempts + 1,
            "phase": case((jobs.c.planned, phase), else_=Phase.BATCHING.value),
        },
    )


def _note(ways: Ways, rows: Any, served: dict[str, Any]) -> Update:
    return (
        update(jobs)
        .where(jobs.c.id == rows.c.id, ways.check(jobs.c.state == JobState.RUNNING.value))
        .values(served | {"updated_at": ways.now()})
    )


@built_once
def start_served(ways: Ways) -> Update:
    """START for the queued jobs among those served."""
    rows = ways.rows("served", SERVED)
    return _start(ways, rows, _served_in_steps(ways, rows))


@built_once
def note_served(ways: Ways) -> Update:
    """The same for jobs that run already."""
    rows = ways.rows("served", SERVED)
    return _note(ways, rows, _served_in_steps(ways, rows))


# A whole claim in one statement, where a statement can be so large (PostgreSQL) ---------------------------------------


def _plain(job: Any) -> Any:
    """Is taking the next stretch all there is to do for a job?"""
    begins = (job.state == JobState.QUEUED.value) & ~job.followed
    return (begins | (job.state == JobState.RUNNING.value)) & (job.returned_items == 0)


@built_once
def claim_at_once(ways: Ways) -> Update:
    """Pick jobs, lock them, take a stretch of each, START those that wait and write their history.

    All of it or nothing: where one of the jobs asks for more (items that came back, followers), or was changed after
    the statement's view of the items was taken, no job is served and no row returned. Each job's data come with its
    first item only.
    """
    version: ColumnElement[Any] = literal_column("jobs.xmin")
    picked = pick_jobs(ways, patient=False).add_columns(version.label("version")).cte("picked")
    one = picked.c
    seen = select(jobs.c.id, version.label("version")).subquery("seen")
    all_plain = (
        select(func.bool_and(_plain(one) & (seen.c.version == one.version)))
        .select_from(picked.join(seen, seen.c.id == one.id))
        .scalar_subquery()
    )
    how_many = select(func.count()).select_from(picked).scalar_subquery()
    share = func.greatest(1, bindparam("the_limit", type_=Integer) // how_many)
    last = func.least(one.claimed_to + share, one.open_to)
    job = func.jsonb_build_array(
        one.id, one.user_id, one.run, one.max_retries, one.single_step, one.open_to, one.params
    )
    ranges = (
        select(
            one.id,
            (one.claimed_to + 1).label("first"),
            last.label("claimed_to"),
            (last < one.open_to).label("more"),
            func.row_number().over().label("number"),
            job.label("job"),
        )
        .where(all_plain)
        .cte("ranges")
    )
    served = _served(ways, ranges, null())
    told = tell_of(ways, _start(ways, ranges, served), START).cte("told")
    noted = _note(ways, ranges, served).cte("noted")
    return (
        update(job_items)
        .where(
            job_items.c.job_id == ranges.c.id,
            job_items.c.position.between(ranges.c.first, ranges.c.claimed_to),
            ways.check(job_items.c.status == _PENDING),
        )
        .values(_taken(ways))
        .returning(
            *_TAKEN_OF_ONE,
            ranges.c.number,
            case((job_items.c.position == ranges.c.first, ranges.c.job), else_=null()),
        )
        .add_cte(told, noted)
    )
