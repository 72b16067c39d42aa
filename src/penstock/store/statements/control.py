"""What people ask for: pause, resume, cancel, commit, abandon, submit; each is one guarded change."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Delete,
    FromClause,
    Insert,
    Select,
    String,
    Text,
    Update,
    bindparam,
    case,
    delete,
    false,
    func,
    insert,
    literal,
    null,
    select,
    true,
    update,
)

from penstock.lifecycle.callers import Visibility
from penstock.lifecycle.states import ItemRole, ItemStatus, JobState, Phase
from penstock.lifecycle.transitions import CANCEL, FAIL, PAUSE, RESUME, START, SUBMIT, SUCCEED, Transition
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.statements.change_state import change_state
from penstock.store.statements.line import not_before_now
from penstock.store.statements.visibility import by_id, free_followers, is_followed, key_in_use, visible_to
from penstock.store.tables import JOB_FOLLOWS, job_items, jobs
from penstock.store.types import Identifier


def _turn(dialect: Dialect) -> ColumnElement[Any]:
    """When a job has something to hand out: now, when the first item is out of its backoff, or not at all."""
    soonest = (
        select(func.min(job_items.c.ready_at))
        .where(
            job_items.c.job_id == jobs.c.id,
            job_items.c.status == ItemStatus.PENDING.value,
            job_items.c.ready_at.is_not(None),
        )
        .scalar_subquery()
    )
    return case((jobs.c.last_claimed < jobs.c.last_claimable, dialect.now()), else_=not_before_now(dialect, soonest))


@built_once
def change_one(dialect: Dialect, transition: Transition, sight: Visibility, *, locked: bool = False) -> Update:
    """The given change for one job, if the caller may see it.

    Whether anybody follows a job can only be looked up once it is ``locked``: until then somebody may be about to. The
    mark in its own row is right at any time, but stays when the last follower has left.
    """
    values: dict[str, Any] = {}
    which = by_id() & visible_to(sight)
    if transition in (SUBMIT, RESUME):
        values = {"next_claim_at": _turn(dialect)}
        which = which & ~key_in_use()
    if transition is CANCEL:
        values = {
            "killed_by": bindparam("the_killed_by", type_=String),
            "killed_reason": bindparam("the_reason", type_=Text),
        }
    if transition is PAUSE:
        which = which & jobs.c.leader_id.is_(None) & ~(is_followed() if locked else jobs.c.has_followers)
    return change_state(dialect, transition, which, values)


@built_once
def follow_instead(dialect: Dialect, transition: Transition, sight: Visibility) -> Update:
    """SUBMIT or RESUME for a job that has never started, while another one leads its key: it follows that one."""
    return change_state(
        dialect,
        transition,
        by_id() & visible_to(sight) & jobs.c.started_at.is_(None),
        {
            "leader_id": bindparam("the_leader_id", type_=Identifier),
            "has_followers": false(),
            "planned": true(),
            "total_items": 0,
            "last_claimed": 0,
            "last_claimable": 0,
            "next_claim_at": null(),
        },
    )


@built_once
def drop_items(dialect: Dialect) -> Delete:
    """The items of a job that will not do its work itself; nobody has touched them."""
    return delete(job_items).where(job_items.c.job_id == bindparam("the_job_id", type_=Identifier))


@built_once
def restore_turn(dialect: Dialect) -> Update:
    """Give a job that should flow the turn its items call for."""
    return (
        update(jobs)
        .where(by_id(), jobs.c.leader_id.is_(None), jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value]))
        .values(next_claim_at=_turn(dialect), last_heartbeat=dialect.now(), updated_at=dialect.now())
        .returning(jobs.c.next_claim_at, jobs.c.state, jobs.c.kind)
    )


@built_once
def start_one(dialect: Dialect) -> Update:
    """START for a job whose items are all out already, or over."""
    return change_state(dialect, START, by_id() & jobs.c.next_claim_at.is_(None))


@built_once
def fail_one(dialect: Dialect) -> Update:
    """FAIL for a job that waits; one without items may have passed that already."""
    return change_state(
        dialect,
        FAIL,
        by_id() & (jobs.c.state == JobState.QUEUED.value),
        {
            "last_error": bindparam("the_error", type_=Text),
            "error_code": bindparam("the_code", type_=String),
            "error_type": bindparam("the_error_type", type_=String),
            "failed_phase": jobs.c.phase,
        },
    )


@built_once
def lock_seen_by(dialect: Dialect, sight: Visibility) -> Select[Any]:
    """What a change depends on, if the caller may see the job; from here on nobody else changes it."""
    return (
        select(jobs.c.state, jobs.c.kind, jobs.c.unique_key, jobs.c.leader_id, jobs.c.started_at)
        .where(by_id(), visible_to(sight))
        .with_for_update(key_share=True)
    )


@built_once
def start_followers(dialect: Dialect) -> Update:
    """START for the jobs that follow these and are free."""
    free = free_followers(dialect.among(jobs.c.leader_id, "the_leaders"))
    return change_state(dialect, START, jobs.c.id == free.c.id)


@built_once
def succeed_followers(dialect: Dialect) -> Update:
    """SUCCEED for the jobs that follow one and are free, with its result and counts."""
    leader = jobs.alias("leader")
    return change_state(
        dialect,
        SUCCEED,
        _follows(leader),
        {
            "result": leader.c.result,
            "phase": leader.c.phase,
            "total_items": leader.c.total_items,
            "processed_items": leader.c.processed_items,
            "failed_items": leader.c.failed_items,
            "not_found_items": leader.c.not_found_items,
            "skipped_items": leader.c.skipped_items,
        },
    )


@built_once
def fail_followers(dialect: Dialect) -> Update:
    """FAIL for the jobs that follow one and are free, for the same reason."""
    leader = jobs.alias("leader")
    copied = ("last_error", "error_code", "error_type", "failed_phase", "killed_by", "killed_reason")
    return change_state(dialect, FAIL, _follows(leader), {name: leader.c[name] for name in copied})


def _follows(leader: FromClause) -> ColumnElement[bool]:
    """The free jobs that follow the one of ``the_leader_id``, beside which they are changed."""
    the_leader: ColumnElement[Any] = bindparam("the_leader_id", type_=Identifier)
    free = free_followers(jobs.c.leader_id == the_leader)
    return (jobs.c.id == free.c.id) & (leader.c.id == the_leader)


@built_once
def lock_followers(dialect: Dialect) -> Select[Any]:
    """The jobs that follow one, who has waited longest first; locked in the order of their ids, as everybody does."""
    return (
        select(jobs.c.id, jobs.c.user_id, jobs.c.state)
        .where(JOB_FOLLOWS, jobs.c.leader_id == bindparam("the_leader_id", type_=Identifier))
        .order_by(jobs.c.id)
        .with_for_update(key_share=True)
    )


@built_once
def promote(dialect: Dialect) -> Update:
    """The heir does the work itself from now on, from the beginning; what limits its run counts from now."""
    leader = jobs.alias("leader")
    has_plan = select(literal(1)).where(
        job_items.c.job_id == leader.c.id, job_items.c.role == ItemRole.PLAN.value
    ).exists()  # fmt: skip
    running = jobs.c.state == JobState.RUNNING.value
    return (
        update(jobs)
        .where(
            jobs.c.id == bindparam("the_successor_id", type_=Identifier),
            jobs.c.leader_id == leader.c.id,
            leader.c.id == bindparam("the_leader_id", type_=Identifier),
        )
        .values(
            leader_id=null(),
            planned=~has_plan,
            has_finalizer=leader.c.has_finalizer,
            single_step=leader.c.single_step,
            total_items=case((has_plan, 0), else_=leader.c.total_items),
            last_claimed=case((has_plan, -1), else_=0),
            last_claimable=case((has_plan, 0), else_=leader.c.total_items),
            file_id=func.coalesce(jobs.c.file_id, leader.c.file_id),
            priority=case((leader.c.priority > jobs.c.priority, leader.c.priority), else_=jobs.c.priority),
            started_at=case((running, dialect.now()), else_=jobs.c.started_at),
            phase=case(
                (running & has_plan, Phase.BATCHING.value), (running, Phase.PROCESSING.value), else_=jobs.c.phase
            ),
            next_claim_at=dialect.now(),
            updated_at=dialect.now(),
        )
    )


@built_once
def inherit_items(dialect: Dialect) -> Insert:
    """The heir's own copy of the work: the plan alone where there is one, otherwise every item as it was given."""
    other = job_items.alias("other")
    has_plan = select(literal(1)).where(
        other.c.job_id == bindparam("the_leader_id", type_=Identifier), other.c.role == ItemRole.PLAN.value
    ).exists()  # fmt: skip
    source = select(
        bindparam("the_successor_id", type_=Identifier),
        bindparam("the_user_id", type_=String),
        job_items.c.kind,
        job_items.c.role,
        job_items.c.position,
        literal(ItemStatus.PENDING.value),
        job_items.c.input_json,
        job_items.c.normalized_json,
        dialect.now(),
    ).where(
        job_items.c.job_id == bindparam("the_leader_id", type_=Identifier),
        job_items.c.role == case((has_plan, ItemRole.PLAN.value), else_=ItemRole.ITEM.value),
    )
    columns = [
        "job_id", "user_id", "kind", "role", "position", "status", "input_json", "normalized_json", "updated_at",
    ]  # fmt: skip
    return insert(job_items).from_select(columns, source)


@built_once
def follow_heir(dialect: Dialect) -> Update:
    """The other followers follow the heir."""
    return (
        update(jobs)
        .where(
            JOB_FOLLOWS,
            jobs.c.leader_id == bindparam("the_leader_id", type_=Identifier),
            jobs.c.id != bindparam("the_successor_id", type_=Identifier),
        )
        .values(leader_id=bindparam("the_successor_id", type_=Identifier))
    )
