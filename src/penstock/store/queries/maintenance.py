"""What a maintenance pass looks for. Each finds a bounded number and passes over what another pass has locked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Float,
    Integer,
    Select,
    String,
    Text,
    Update,
    bindparam,
    case,
    func,
    literal,
    null,
    or_,
    select,
)

from penstock.lifecycle.states import FLOWING, ErrorType, ItemStatus, JobState, KilledBy
from penstock.lifecycle.transitions import ABANDON, CANCEL, FAIL, REQUEUE
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.change_state import ChangedJob, change_state
from penstock.store.queries.line import priorities_in_line
from penstock.store.queries.visibility import by_id, by_ids, is_followed
from penstock.store.tables import JOB_FOLLOWS, JOB_IS_DONE, job_items, jobs
from penstock.store.transaction import Transaction

_CLOCKS_DIFFER = 1.0
"""How many seconds a next claim may lie ahead of our statement's time and still be another transaction's now."""


def current_moment(transaction: Transaction) -> datetime:
    """The time by the database's clock."""
    [now] = transaction.values(datetime, _current_moment(transaction.dialect))
    return now


@built_once
def _current_moment(dialect: Dialect) -> Select[Any]:
    return select(dialect.now())


def _some(*conditions: ColumnElement[bool]) -> Select[Any]:
    """A bounded number of jobs that meet the conditions, locked."""
    return (
        select(jobs.c.id)
        .where(*conditions)
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(skip_locked=True, key_share=True)
    )


def _seconds_ago(dialect: Dialect) -> ColumnElement[datetime]:
    return dialect.later(dialect.now(), -bindparam("seconds", type_=Float))


_OF_KIND = jobs.c.kind == bindparam("kind")


def due_retries(transaction: Transaction, *, limit: int) -> list[UUID]:
    """Jobs whose backoff has passed, with no worker to claim them."""
    return transaction.values(UUID, _due_retries(transaction.dialect), {"limit": limit})


@built_once
def _due_retries(dialect: Dialect) -> Select[Any]:
    # Found by their state: all that was ever in line would be many more.
    return _some(jobs.c.state == JobState.RETRYING.value, dialect.check(jobs.c.next_claim_at <= dialect.now()))


def requeue_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> list[ChangedJob]:
    """REQUEUE for jobs whose backoff has passed."""
    return transaction.fetch(ChangedJob, _requeue_jobs(transaction.dialect), {"job_ids": job_ids})


@built_once
def _requeue_jobs(dialect: Dialect) -> Update:
    return change_state(dialect, REQUEUE, by_ids(dialect), {"next_claim_at": dialect.now()})


def unused_results(transaction: Transaction, kind: str, *, seconds: float, limit: int) -> list[UUID]:
    """Jobs of a kind whose result nobody used in time."""
    parameters = {"kind": kind, "seconds": seconds, "limit": limit}
    return transaction.values(UUID, _unused_results(transaction.dialect), parameters)


@built_once
def _unused_results(dialect: Dialect) -> Select[Any]:
    return _some(
        JOB_IS_DONE,
        jobs.c.state == JobState.SUCCEEDED.value,
        _OF_KIND,
        jobs.c.completed_at < _seconds_ago(dialect),
        # Who follows it and was passed over when it ended still gets its result.
        or_(~jobs.c.has_followers, ~is_followed()),
    )


def abandon_jobs(transaction: Transaction, job_ids: Sequence[UUID], *, prune_results: bool) -> list[ChangedJob]:
    """ABANDON for jobs whose result nobody used; their results go too where the kind says so."""
    statement = _abandon_jobs(transaction.dialect, prune_results=prune_results)
    return transaction.fetch(ChangedJob, statement, {"job_ids": job_ids})


@built_once
def _abandon_jobs(dialect: Dialect, *, prune_results: bool) -> Update:
    return change_state(dialect, ABANDON, by_ids(dialect), {"result": null()} if prune_results else None)


def held_too_long(transaction: Transaction, kind: str, *, seconds: float, limit: int) -> list[UUID]:
    """Jobs of a kind that were created so long ago and never submitted."""
    parameters = {"kind": kind, "seconds": seconds, "limit": limit}
    return transaction.values(UUID, _held_too_long(transaction.dialect), parameters)


@built_once
def _held_too_long(dialect: Dialect) -> Select[Any]:
    return _some(
        jobs.c.state == JobState.CREATED.value,
        _OF_KIND,
        jobs.c.engine.is_(None),
        jobs.c.run_at.is_(None),  # nobody has to submit one that is released by itself
        jobs.c.created_at < _seconds_ago(dialect),
    )


def cancel_held(
    transaction: Transaction, job_ids: Sequence[UUID], *, killed_by: KilledBy, reason: str
) -> list[ChangedJob]:
    """CANCEL for jobs that nobody submitted; who did in the meantime keeps theirs."""
    parameters = {"job_ids": job_ids, "killer": killed_by.value, "reason": reason}
    return transaction.fetch(ChangedJob, _cancel_held(transaction.dialect), parameters)


@built_once
def _cancel_held(dialect: Dialect) -> Update:
    return change_state(
        dialect,
        CANCEL,
        by_ids(dialect) & (jobs.c.state == JobState.CREATED.value),
        {
            "killed_by": bindparam("killer", type_=String),
            "killed_reason": bindparam("reason", type_=Text),
        },
    )


def waited_too_long(transaction: Transaction, kind: str, *, seconds: float, limit: int) -> list[UUID]:
    """Queued jobs of a kind that no worker took in time after their turn; who follows fails with its leader."""
    parameters = {"kind": kind, "seconds": seconds, "limit": limit}
    return transaction.values(UUID, _waited_too_long(transaction.dialect), parameters)


@built_once
def _waited_too_long(dialect: Dialect) -> Select[Any]:
    limit = _seconds_ago(dialect)
    return _some(
        jobs.c.state == JobState.QUEUED.value,
        _OF_KIND,
        jobs.c.leader_id.is_(None),
        jobs.c.queued_at < limit,
        func.coalesce(jobs.c.next_claim_at, jobs.c.queued_at) < limit,
    )


def ran_too_long(transaction: Transaction, kind: str, *, seconds: float, limit: int) -> list[UUID]:
    """Running jobs of a kind past the kind's limit; who follows fails with its leader."""
    parameters = {"kind": kind, "seconds": seconds, "limit": limit}
    return transaction.values(UUID, _ran_too_long(transaction.dialect), parameters)


@built_once
def _ran_too_long(dialect: Dialect) -> Select[Any]:
    return _some(
        jobs.c.state == JobState.RUNNING.value,
        _OF_KIND,
        jobs.c.leader_id.is_(None),
        jobs.c.started_at < _seconds_ago(dialect),
    )


def fail_overdue(
    transaction: Transaction,
    job_ids: Sequence[UUID],
    *,
    error: str,
    code: str,
    error_type: ErrorType,
    error_class: str | None,
    killed_by: KilledBy | None,
) -> list[ChangedJob]:
    """FAIL for jobs past a limit of their kind, by what limit."""
    parameters = {
        "job_ids": job_ids,
        "error": error,
        "code": code,
        "of_type": error_type.value,
        "of_class": error_class,
        "killer": None if killed_by is None else killed_by.value,
    }
    return transaction.fetch(ChangedJob, _fail_overdue(transaction.dialect), parameters)


@built_once
def _fail_overdue(dialect: Dialect) -> Update:
    killer, error = bindparam("killer", type_=String), bindparam("error", type_=Text)
    return change_state(
        dialect,
        FAIL,
        by_ids(dialect),
        {
            "last_error": error,
            "error_code": bindparam("code", type_=String),
            "error_type": bindparam("of_type", type_=String),
            "error_class": bindparam("of_class", type_=String),
            "failed_phase": jobs.c.phase,
            "killed_by": killer,
            "killed_reason": case((killer == KilledBy.TIMEOUT.value, error), else_=null()),
        },
    )


def stale_jobs(transaction: Transaction, *, seconds: float, limit: int) -> list[UUID]:
    """Jobs that should run, but have no next claim, no item that a worker holds, and no recent sign of life."""
    return transaction.values(UUID, _stale_jobs(transaction.dialect), {"seconds": seconds, "limit": limit})


@built_once
def _stale_jobs(dialect: Dialect) -> Select[Any]:
    is_held = (
        select(job_items.c.id)
        .where(job_items.c.job_id == jobs.c.id, job_items.c.status == ItemStatus.PROCESSING.value)
        .exists()
    )
    limit = _seconds_ago(dialect)
    return _some(
        jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value]),
        jobs.c.created_at < limit,  # so that those that came and went meanwhile are not even looked at
        jobs.c.leader_id.is_(None),
        jobs.c.engine.is_(None),
        dialect.check(jobs.c.next_claim_at.is_(None)),
        jobs.c.updated_at < limit,
        func.coalesce(jobs.c.last_heartbeat, jobs.c.updated_at) < limit,
        ~is_held,
    )


def postponed_jobs(transaction: Transaction, kind: str, *, limit: int) -> list[UUID]:
    """Jobs with fresh items whose next claim is in the future: the clock has been set back since it was written."""
    return transaction.values(UUID, _postponed_jobs(transaction.dialect), {"kind": kind, "limit": limit})


@built_once
def _postponed_jobs(dialect: Dialect) -> Select[Any]:
    statement = _some(
        _OF_KIND,
        jobs.c.next_claim_at > dialect.later(dialect.now(), literal(_CLOCKS_DIFFER)),
        dialect.check(jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])),
        jobs.c.last_claimed < jobs.c.last_claimable,
    )
    if not dialect.skips_in_indexes:
        # A server skips from one priority to the next in the index, or reads no row before it has compared the turn.
        return statement.where(jobs.c.priority.in_(select(priorities_in_line().c.priority)))
    return statement


# Followers whose leader does not lead any more ------------------------------------------------------------------------


def left_behind(transaction: Transaction, *, limit: int) -> list[UUID]:
    """Leaders that do not lead any more, but are followed; one for each of its followers."""
    return transaction.values(UUID, _left_behind(transaction.dialect), {"limit": limit})


@built_once
def _left_behind(_: Dialect) -> Select[Any]:
    leader = jobs.alias("leader")
    return (
        select(leader.c.id)
        .select_from(jobs.join(leader, leader.c.id == jobs.c.leader_id))
        .where(JOB_FOLLOWS, leader.c.state.not_in([state.value for state in JobState if state in FLOWING]))
        .limit(bindparam("limit", type_=Integer))
    )


def lock_leader(transaction: Transaction, job_id: UUID) -> JobState | None:
    """The state of such a leader, locked; None while somebody else has it locked."""
    state = transaction.value(str, _lock_leader(transaction.dialect), {"job_id": job_id})
    return None if state is None else JobState(state)


@built_once
def _lock_leader(_: Dialect) -> Select[Any]:
    return select(jobs.c.state).where(by_id()).with_for_update(skip_locked=True, key_share=True)
