"""What happens to jobs that follow another: they start and end with it, or one of them inherits its work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Insert,
    Select,
    String,
    Update,
    bindparam,
    case,
    func,
    insert,
    literal,
    null,
    select,
    update,
)

from penstock.lifecycle.states import ItemRole, ItemStatus, JobState, Phase
from penstock.lifecycle.transitions import FAIL, START, SUCCEED
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.change_state import ChangedJob, change_state
from penstock.store.queries.visibility import by_id, free_followers
from penstock.store.tables import JOB_FOLLOWS, job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier

_RESULT = ("result", "total_items", "processed_items", "failed_items", "not_found_items", "skipped_items", "phase")
_FAILURE = ("last_error", "error_code", "error_type", "error_class", "failed_phase", "killed_by", "killed_reason")
"""What a follower gets of its leader when that ends."""


def start_follower(transaction: Transaction, job_id: UUID) -> list[ChangedJob]:
    """START for a job that follows one which runs."""
    return transaction.fetch(ChangedJob, _start_follower(transaction.dialect), {"job_id": job_id})


@built_once
def _start_follower(dialect: Dialect) -> Update:
    return change_state(dialect, START, by_id())


def succeed_as_leader(transaction: Transaction, job_id: UUID) -> list[ChangedJob]:
    """SUCCEED with the result and the counts of its leader, which is over; the copy is as old as that result."""
    return transaction.fetch(ChangedJob, _succeed_as_leader(transaction.dialect), {"job_id": job_id})


@built_once
def _succeed_as_leader(dialect: Dialect) -> Update:
    leader = jobs.alias("leader")
    result_at = func.coalesce(leader.c.result_at, leader.c.completed_at)
    copied_columns = {name: leader.c[name] for name in _RESULT}
    return change_state(
        dialect, SUCCEED, by_id() & (jobs.c.leader_id == leader.c.id), copied_columns | {"result_at": result_at}
    )


def start_followers(transaction: Transaction, leader_ids: Sequence[UUID]) -> list[ChangedJob]:
    """START for the jobs that follow these and are free."""
    return transaction.fetch(ChangedJob, _start_followers(transaction.dialect), {"leader_ids": leader_ids})


@built_once
def _start_followers(dialect: Dialect) -> Update:
    free = free_followers(dialect.among(jobs.c.leader_id, "leader_ids"))
    return change_state(dialect, START, jobs.c.id == free.c.id)


def succeed_followers(transaction: Transaction, leader_id: UUID) -> list[ChangedJob]:
    """SUCCEED for the jobs that follow one and are free, with its result and counts."""
    return transaction.fetch(ChangedJob, _succeed_followers(transaction.dialect), {"leader_id": leader_id})


@built_once
def _succeed_followers(dialect: Dialect) -> Update:
    leader = jobs.alias("leader")
    return change_state(dialect, SUCCEED, _follows(leader), {name: leader.c[name] for name in _RESULT})


def fail_followers(transaction: Transaction, leader_id: UUID) -> list[ChangedJob]:
    """FAIL for the jobs that follow one and are free, for the same reason."""
    return transaction.fetch(ChangedJob, _fail_followers(transaction.dialect), {"leader_id": leader_id})


@built_once
def _fail_followers(dialect: Dialect) -> Update:
    leader = jobs.alias("leader")
    return change_state(dialect, FAIL, _follows(leader), {name: leader.c[name] for name in _FAILURE})


def _leader_id() -> ColumnElement[UUID]:
    return bindparam("leader_id", type_=Identifier)


def _successor_id() -> ColumnElement[UUID]:
    return bindparam("successor_id", type_=Identifier)


def _follows(leader: FromClause) -> ColumnElement[bool]:
    """The free jobs that follow the leader, beside which they are changed."""
    free = free_followers(jobs.c.leader_id == _leader_id())
    return (jobs.c.id == free.c.id) & (leader.c.id == _leader_id())


class Follower(NamedTuple):
    """A job that follows another."""

    id: UUID
    user_id: str | None
    state: str


def lock_followers(transaction: Transaction, leader_id: UUID) -> list[Follower]:
    """The jobs that follow one, who has waited longest first; locked in the order of their ids, as everybody does."""
    return transaction.fetch(Follower, _lock_followers(transaction.dialect), {"leader_id": leader_id})


@built_once
def _lock_followers(_: Dialect) -> Select[Any]:
    return (
        select(jobs.c.id, jobs.c.user_id, jobs.c.state)
        .where(JOB_FOLLOWS, jobs.c.leader_id == _leader_id())
        .order_by(jobs.c.id)
        .with_for_update(key_share=True)
    )


def promote(transaction: Transaction, successor_id: UUID, leader_id: UUID) -> None:
    """The successor does the work itself from now on, from the beginning; what limits its run counts from now."""
    transaction.execute(_promote(transaction.dialect), {"successor_id": successor_id, "leader_id": leader_id})


@built_once
def _promote(dialect: Dialect) -> Update:
    leader = jobs.alias("leader")
    has_plan = select(literal(1)).where(
        job_items.c.job_id == leader.c.id, job_items.c.role == ItemRole.PLAN.value
    ).exists()  # fmt: skip
    running = jobs.c.state == JobState.RUNNING.value
    return (
        update(jobs)
        .where(jobs.c.id == _successor_id(), jobs.c.leader_id == leader.c.id, leader.c.id == _leader_id())
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
            recent_at=dialect.now(),
            phase=case(
                (running & has_plan, Phase.BATCHING.value), (running, Phase.PROCESSING.value), else_=jobs.c.phase
            ),
            next_claim_at=dialect.now(),
            updated_at=dialect.now(),
        )
    )


def inherit_items(transaction: Transaction, successor_id: UUID, leader_id: UUID, *, user_id: str | None) -> None:
    """The successor's own copy of the work: the plan alone where there is one, otherwise every item as it was given."""
    parameters = {"successor_id": successor_id, "leader_id": leader_id, "user_id": user_id}
    transaction.execute(_inherit_items(transaction.dialect), parameters)


@built_once
def _inherit_items(dialect: Dialect) -> Insert:
    other = job_items.alias("other")
    has_plan = select(literal(1)).where(
        other.c.job_id == _leader_id(), other.c.role == ItemRole.PLAN.value
    ).exists()  # fmt: skip
    source = select(
        _successor_id(),
        bindparam("user_id", type_=String),
        job_items.c.kind,
        job_items.c.role,
        job_items.c.position,
        literal(ItemStatus.PENDING.value),
        job_items.c.input_json,
        job_items.c.normalized_json,
        dialect.now(),
    ).where(
        job_items.c.job_id == _leader_id(),
        job_items.c.role == case((has_plan, ItemRole.PLAN.value), else_=ItemRole.ITEM.value),
    )
    columns = [
        "job_id", "user_id", "kind", "role", "position", "status", "input_json", "normalized_json", "updated_at",
    ]  # fmt: skip
    return insert(job_items).from_select(columns, source)


def follow_successor(transaction: Transaction, successor_id: UUID, leader_id: UUID) -> None:
    """The other followers follow the successor."""
    transaction.execute(_follow_successor(transaction.dialect), {"successor_id": successor_id, "leader_id": leader_id})


@built_once
def _follow_successor(_: Dialect) -> Update:
    return (
        update(jobs)
        .where(JOB_FOLLOWS, jobs.c.leader_id == _leader_id(), jobs.c.id != _successor_id())
        .values(leader_id=_successor_id())
    )
