"""What a maintenance pass looks for. Each finds a bounded number and passes over what another pass has locked."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Float,
    Integer,
    Select,
    String,
    Text,
    Update,
    and_,
    bindparam,
    case,
    func,
    literal,
    null,
    or_,
    select,
)

from penstock.lifecycle.states import FLOWING, ItemStatus, JobState, KilledBy
from penstock.lifecycle.transitions import ABANDON, FAIL, REQUEUE, RESCUE
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.statements.change_state import change_state
from penstock.store.statements.line import priorities_in_line
from penstock.store.statements.visibility import by_ids, is_followed
from penstock.store.tables import ITEM_IS_OPEN, JOB_FOLLOWS, job_items, jobs
from penstock.store.types import Moment

_CLOCKS_DIFFER = 1.0
"""Seconds by which a turn may lie ahead of our own statement's time and still be somebody's now."""


@built_once
def expired_items(dialect: Dialect) -> Select[Any]:
    """Items whose lease has run out, before a moment if one is given, but for those of some workers."""
    moment = func.coalesce(bindparam("the_moment", type_=Moment), dialect.now())
    spared = dialect.among(job_items.c.locked_by, "the_workers")
    return _held_items(and_(job_items.c.lock_expires_at < moment, ~spared))


@built_once
def current_moment(dialect: Dialect) -> Select[Any]:
    """The time by the database's clock."""
    return select(dialect.now())


@built_once
def items_held_by(dialect: Dialect) -> Select[Any]:
    """Items in the hands of one worker."""
    return _held_items(job_items.c.locked_by == bindparam("the_worker", type_=String))


@built_once
def holds_any(dialect: Dialect) -> Select[Any]:
    """Is anything in the hands of that worker, also what somebody has locked?"""
    held = job_items.c.locked_by == bindparam("the_worker", type_=String)
    return select(job_items.c.id).where(job_items.c.status == ItemStatus.PROCESSING.value, ITEM_IS_OPEN, held).limit(1)


def _held_items(condition: ColumnElement[bool]) -> Select[Any]:
    """Locked with their jobs; what somebody else has locked is left out, and so are all items of a locked job."""
    return (
        select(
            job_items.c.id,
            job_items.c.job_id,
            job_items.c.kind,
            job_items.c.role,
            job_items.c.deaths,
            job_items.c.lease,
            job_items.c.alone,
            job_items.c.locked_by,
        )
        .select_from(job_items.join(jobs, jobs.c.id == job_items.c.job_id))
        .where(job_items.c.status == ItemStatus.PROCESSING.value, ITEM_IS_OPEN, condition)
        .limit(bindparam("the_limit", type_=Integer))
        .with_for_update(skip_locked=True, key_share=True, of=(job_items, jobs))
    )


@built_once
def rescue_jobs(dialect: Dialect) -> Update:
    """RESCUE for the running jobs whose items were held by a worker that died."""
    return change_state(dialect, RESCUE, by_ids(dialect), {"deaths": jobs.c.deaths + 1})


def _some(dialect: Dialect, *conditions: Any) -> Select[Any]:
    """A bounded number of jobs that meet the conditions, locked."""
    return (
        select(jobs.c.id)
        .where(*conditions)
        .limit(bindparam("the_limit", type_=Integer))
        .with_for_update(skip_locked=True, key_share=True)
    )


@built_once
def due_retries(dialect: Dialect) -> Select[Any]:
    """Jobs whose backoff has passed, with no worker to claim them."""
    # Found by their state: all that was ever in line would be many more.
    return _some(dialect, jobs.c.state == JobState.RETRYING.value, dialect.check(jobs.c.next_claim_at <= dialect.now()))


@built_once
def requeue_due(dialect: Dialect) -> Update:
    """REQUEUE for those."""
    return change_state(dialect, REQUEUE, by_ids(dialect), {"next_claim_at": dialect.now()})


@built_once
def unused_results(dialect: Dialect) -> Select[Any]:
    """Jobs of a kind whose result nobody used in time."""
    limit = dialect.later(dialect.now(), -bindparam("the_seconds", type_=Float))
    return _some(
        dialect,
        jobs.c.state == JobState.SUCCEEDED.value,
        jobs.c.kind == bindparam("the_kind"),
        jobs.c.completed_at < limit,
        # Who follows it and was passed over when it ended still gets its result.
        or_(~jobs.c.has_followers, ~is_followed()),
    )


@built_once
def abandon_unused(dialect: Dialect, *, prune: bool) -> Update:
    """ABANDON for those; their results go too where the kind says so."""
    return change_state(dialect, ABANDON, by_ids(dialect), {"result": null()} if prune else None)


@built_once
def waited_too_long(dialect: Dialect) -> Select[Any]:
    """Queued jobs of a kind that no worker took in time after their turn; who follows fails with its leader."""
    limit = dialect.later(dialect.now(), -bindparam("the_seconds", type_=Float))
    return _some(
        dialect,
        jobs.c.state == JobState.QUEUED.value,
        jobs.c.kind == bindparam("the_kind"),
        jobs.c.leader_id.is_(None),
        jobs.c.queued_at < limit,
        func.coalesce(jobs.c.next_claim_at, jobs.c.queued_at) < limit,
    )


@built_once
def ran_too_long(dialect: Dialect) -> Select[Any]:
    """Running jobs of a kind past the kind's limit; who follows fails with its leader."""
    limit = dialect.later(dialect.now(), -bindparam("the_seconds", type_=Float))
    return _some(
        dialect,
        jobs.c.state == JobState.RUNNING.value,
        jobs.c.kind == bindparam("the_kind"),
        jobs.c.leader_id.is_(None),
        jobs.c.started_at < limit,
    )


@built_once
def fail_overdue(dialect: Dialect) -> Update:
    """FAIL for those, by what limit."""
    killed = bindparam("the_killed_by", type_=String)
    error = bindparam("the_error", type_=Text)
    return change_state(
        dialect,
        FAIL,
        by_ids(dialect),
        {
            "last_error": error,
            "error_code": bindparam("the_code", type_=String),
            "error_type": bindparam("the_error_type", type_=String),
            "failed_phase": jobs.c.phase,
            "killed_by": killed,
            "killed_reason": case((killed == KilledBy.TIMEOUT.value, error), else_=null()),
        },
    )


@built_once
def stale_jobs(dialect: Dialect) -> Select[Any]:
    """Jobs that should flow, but have no turn, no item in a worker's hands, and no recent sign of life."""
    held = (
        select(job_items.c.id)
        .where(job_items.c.job_id == jobs.c.id, job_items.c.status == ItemStatus.PROCESSING.value)
        .exists()
    )
    limit = dialect.later(dialect.now(), -bindparam("the_seconds", type_=Float))
    return _some(
        dialect,
        jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value]),
        jobs.c.created_at < limit,  # so that those that came and went meanwhile are not even looked at
        jobs.c.leader_id.is_(None),
        dialect.check(jobs.c.next_claim_at.is_(None)),
        jobs.c.updated_at < limit,
        func.coalesce(jobs.c.last_heartbeat, jobs.c.updated_at) < limit,
        ~held,
    )


@built_once
def postponed_jobs(dialect: Dialect) -> Select[Any]:
    """Jobs of a kind with fresh items whose turn is still to come: the clock has been set back since it was written."""
    postponed = _some(
        dialect,
        jobs.c.kind == bindparam("the_kind"),
        jobs.c.next_claim_at > dialect.later(dialect.now(), literal(_CLOCKS_DIFFER)),
        dialect.check(jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])),
        jobs.c.last_claimed < jobs.c.last_claimable,
    )
    if dialect.in_our_process:
        # A server skips from one priority to the next in the index, or reads no row before it has compared the turn.
        return postponed.where(jobs.c.priority.in_(select(priorities_in_line().c.priority)))
    return postponed


@built_once
def left_behind(dialect: Dialect) -> Select[Any]:
    """Leaders that do not lead any more, but are followed."""
    leader = jobs.alias("leader")
    return (
        select(leader.c.id)
        .select_from(jobs.join(leader, leader.c.id == jobs.c.leader_id))
        .where(JOB_FOLLOWS, leader.c.state.not_in([state.value for state in JobState if state in FLOWING]))
        .limit(bindparam("the_limit", type_=Integer))
    )


@built_once
def lock_leaders(dialect: Dialect) -> Select[Any]:
    """Those of them that nobody has locked."""
    return (
        select(jobs.c.id, jobs.c.kind, jobs.c.state)
        .where(by_ids(dialect))
        .order_by(jobs.c.id)
        .with_for_update(skip_locked=True, key_share=True)
    )
