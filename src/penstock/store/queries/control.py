"""What people ask for: pause, resume, cancel, commit, abandon, submit; each is one guarded change."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Delete,
    Select,
    String,
    Text,
    Update,
    bindparam,
    case,
    delete,
    false,
    func,
    null,
    select,
    true,
    update,
)

from penstock.lifecycle.callers import Caller, Visibility
from penstock.lifecycle.states import ErrorType, ItemStatus, JobState
from penstock.lifecycle.transitions import CANCEL, FAIL, PAUSE, RESUME, START, SUBMIT, Transition
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.change_state import ChangedJob, change_state
from penstock.store.queries.line import not_before_now
from penstock.store.queries.settle import NO_PACE
from penstock.store.queries.visibility import by_id, is_followed, key_in_use, visible_to
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


def change_job(
    transaction: Transaction,
    transition: Transition,
    job_id: UUID,
    caller: Caller,
    *,
    reason: str | None,
    is_locked: bool = False,
) -> list[ChangedJob]:
    """The given change for one job, if the caller may see it.

    Whether anybody follows a job can only be looked up once it is locked: until then somebody may be about to. The mark
    in its own row is right at any time, but stays when the last follower has left.
    """
    parameters = {
        "job_id": job_id,
        "caller_id": caller.id,
        "killer": caller.killed_by.value,
        "reason": reason,
    }
    statement = _change_job(transaction.dialect, transition, caller.sight, is_locked=is_locked)
    return transaction.fetch(ChangedJob, statement, parameters)


@built_once
def _change_job(dialect: Dialect, transition: Transition, sight: Visibility, *, is_locked: bool) -> Update:
    values: dict[str, Any] = {}
    which = by_id() & visible_to(sight)
    if transition in (SUBMIT, RESUME):
        values = {"next_claim_at": _turn(dialect)}
        which = which & ~key_in_use()
    if transition is RESUME:
        values |= NO_PACE
    if transition is CANCEL:
        values = {
            "killed_by": bindparam("killer", type_=String),
            "killed_reason": bindparam("reason", type_=Text),
        }
    if transition is PAUSE:
        is_alone = jobs.c.leader_id.is_(None) & ~(is_followed() if is_locked else jobs.c.has_followers)
        which = which & is_alone & jobs.c.engine.is_(None)
    return change_state(dialect, transition, which, values)


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


def follow_instead(
    transaction: Transaction, transition: Transition, job_id: UUID, caller: Caller, *, leader_id: UUID
) -> list[ChangedJob]:
    """SUBMIT or RESUME for a job that has never started, while another one leads its key: it follows that one."""
    parameters = {"job_id": job_id, "caller_id": caller.id, "new_leader_id": leader_id}
    statement = _follow_instead(transaction.dialect, transition, caller.sight)
    return transaction.fetch(ChangedJob, statement, parameters)


@built_once
def _follow_instead(dialect: Dialect, transition: Transition, sight: Visibility) -> Update:
    return change_state(
        dialect,
        transition,
        by_id() & visible_to(sight) & jobs.c.started_at.is_(None),
        {
            "leader_id": bindparam("new_leader_id", type_=Identifier),
            "has_followers": false(),
            "planned": true(),
            "total_items": 0,
            "last_claimed": 0,
            "last_claimable": 0,
            "next_claim_at": null(),
        },
    )


def drop_items(transaction: Transaction, job_id: UUID) -> None:
    """The items of a job that will not do its work itself go; nobody has touched them."""
    transaction.execute(_drop_items(transaction.dialect), {"job_id": job_id})


@built_once
def _drop_items(_: Dialect) -> Delete:
    return delete(job_items).where(job_items.c.job_id == bindparam("job_id", type_=Identifier))


class RestoredJob(NamedTuple):
    """A job whose next claim fits its items."""

    next_claim_at: datetime | None
    state: str
    kind: str


def restore_turn(transaction: Transaction, job_id: UUID) -> RestoredJob | None:
    """Set the next claim of a job that should run by its items."""
    return transaction.fetch_one(RestoredJob, _restore_turn(transaction.dialect), {"job_id": job_id})


@built_once
def _restore_turn(dialect: Dialect) -> Update:
    return (
        update(jobs)
        .where(
            by_id(),
            jobs.c.leader_id.is_(None),
            jobs.c.engine.is_(None),
            jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value]),
        )
        .values(next_claim_at=_turn(dialect), last_heartbeat=dialect.now(), updated_at=dialect.now())
        .returning(jobs.c.next_claim_at, jobs.c.state, jobs.c.kind)
    )


def start_handed_out(transaction: Transaction, job_id: UUID) -> list[ChangedJob]:
    """START for a job whose items are all out already, or over."""
    return transaction.fetch(ChangedJob, _start_handed_out(transaction.dialect), {"job_id": job_id})


@built_once
def _start_handed_out(dialect: Dialect) -> Update:
    return change_state(dialect, START, by_id() & jobs.c.next_claim_at.is_(None))


def fail_queued(
    transaction: Transaction, job_id: UUID, *, error: str, code: str, error_type: ErrorType
) -> list[ChangedJob]:
    """FAIL for a job that waits; one without items may have passed that already."""
    parameters = {"job_id": job_id, "error": error, "code": code, "of_type": error_type.value}
    return transaction.fetch(ChangedJob, _fail_queued(transaction.dialect), parameters)


@built_once
def _fail_queued(dialect: Dialect) -> Update:
    return change_state(
        dialect,
        FAIL,
        by_id() & (jobs.c.state == JobState.QUEUED.value),
        {
            "last_error": bindparam("error", type_=Text),
            "error_code": bindparam("code", type_=String),
            "error_type": bindparam("of_type", type_=String),
            "failed_phase": jobs.c.phase,
        },
    )


class LockedJob(NamedTuple):
    """What a change of a job depends on."""

    state: str
    kind: str
    unique_key: str | None
    leader_id: UUID | None
    started_at: datetime | None
    engine: str | None


def lock_job(transaction: Transaction, job_id: UUID, caller: Caller) -> LockedJob | None:
    """What a change depends on, if the caller may see the job; from here on nobody else changes it."""
    parameters = {"job_id": job_id, "caller_id": caller.id}
    return transaction.fetch_one(LockedJob, _lock_job(transaction.dialect, caller.sight), parameters)


@built_once
def _lock_job(_: Dialect, sight: Visibility) -> Select[Any]:
    return (
        select(*(jobs.c[name] for name in LockedJob._fields))
        .where(by_id(), visible_to(sight))
        .with_for_update(key_share=True)
    )
