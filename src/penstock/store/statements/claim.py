"""What a claim asks: which jobs have their turn, which items to take, and when each job's next turn is."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Float,
    Insert,
    Integer,
    Select,
    String,
    Update,
    bindparam,
    case,
    func,
    null,
    select,
    update,
)

from penstock.lifecycle.states import ItemStatus, JobState, Phase
from penstock.lifecycle.transitions import START
from penstock.store.dialects.contract import Field, Ways
from penstock.store.statements.built_once import built_once
from penstock.store.statements.change_state import change_state, tell_of
from penstock.store.tables import job_items, jobs
from penstock.store.types import Identifier, Moment

_PENDING = ItemStatus.PENDING.value


@built_once
def pick_jobs(ways: Ways, *, patient: bool) -> Select[Any]:
    """The jobs of a kind whose turn it is, locked; a patient claim waits for a lock instead of passing over it."""
    return (
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


@built_once
def next_turn(ways: Ways) -> Select[Any, Any]:
    """Seconds until the next turn of any job of a kind: zero or less when one is due, null when there is none."""
    soonest = func.min(jobs.c.turn_at)
    return select(soonest, ways.now().label("now")).where(
        jobs.c.kind == bindparam("the_kind"), jobs.c.turn_at.is_not(None)
    )


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
        select(job_items.c.id)
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


def _served(ways: Ways, rows: Any) -> dict[str, Any]:
    """A job that still has items to hand out goes to the back of the line; one that has none leaves it."""
    now = ways.now()
    return {
        "claimed_to": rows.c.claimed_to,
        "returned_items": jobs.c.returned_items - rows.c.returned_taken,
        "turn_at": case((rows.c.more, now), else_=rows.c.turn_at),
        "last_heartbeat": now,
    }


@built_once
def start_served(ways: Ways) -> Update:
    """START for the queued jobs among those served."""
    rows = ways.rows("served", SERVED)
    phase = case((jobs.c.open_to > jobs.c.total_items, Phase.FINALIZING.value), else_=Phase.PROCESSING.value)
    return change_state(
        ways,
        START,
        jobs.c.id == rows.c.id,
        _served(ways, rows)
        | {
            "attempts": jobs.c.attempts + 1,
            "phase": case((jobs.c.planned, phase), else_=Phase.BATCHING.value),
        },
    )


@built_once
def start_and_tell(ways: Ways) -> Insert:
    """START for the queued jobs among those served, with its history, where one statement can do both."""
    return tell_of(ways, start_served(ways), START)


@built_once
def note_served(ways: Ways) -> Update:
    """The same for jobs that run already."""
    rows = ways.rows("served", SERVED)
    return (
        update(jobs)
        .where(jobs.c.id == rows.c.id, ways.check(jobs.c.state == JobState.RUNNING.value))
        .values(_served(ways, rows) | {"updated_at": ways.now()})
    )
