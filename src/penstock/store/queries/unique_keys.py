"""Which jobs do the work of a unique key, or have done it."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Float, Select, String, Update, bindparam, case, func, or_, select, true, update

from penstock.lifecycle.states import JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.visibility import by_id
from penstock.store.tables import JOB_FOLLOWS, JOB_IS_A_GUESTS, JOB_IS_OWNED, JOB_LEADS, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


class Leader(NamedTuple):
    """The job that does the work of a key."""

    id: UUID
    state: str


class FreshResult(NamedTuple):
    """A job whose result is young enough."""

    id: UUID
    waits: bool
    """Is it the asker's own, and still waits for them?"""


def leading_job(transaction: Transaction, kind: str, unique_key: str) -> Leader | None:
    """The one job that leads a key, locked."""
    parameters = {"kind": kind, "unique_key": unique_key}
    return transaction.fetch_one(Leader, _leading_job(transaction.dialect), parameters)


@built_once
def _leading_job(_: Dialect) -> Select[Any]:
    return select(jobs.c.id, jobs.c.state).where(JOB_LEADS, *_same_work()).with_for_update(key_share=True)


def own_job(transaction: Transaction, kind: str, unique_key: str, user_id: str | None) -> UUID | None:
    """The active job of a key that is an owner's, or the guests', and does work: it leads, or is held or paused."""
    parameters = {"kind": kind, "unique_key": unique_key, "user_id": user_id}
    return transaction.value(UUID, _own_job(transaction.dialect, guest=user_id is None), parameters)


@built_once
def _own_job(_: Dialect, *, guest: bool) -> Select[Any]:
    if guest:
        return select(jobs.c.id).where(JOB_IS_A_GUESTS, *_same_work())
    return select(jobs.c.id).where(JOB_IS_OWNED, *_same_work(), jobs.c.user_id == bindparam("user_id"))


def followers_job(transaction: Transaction, leader_id: UUID, user_id: str | None) -> UUID | None:
    """The active job in which an owner already follows a leader."""
    parameters = {"leader_id": leader_id, "user_id": user_id}
    return transaction.value(UUID, _followers_job(transaction.dialect), parameters)


@built_once
def _followers_job(_: Dialect) -> Select[Any]:
    return select(jobs.c.id).where(
        JOB_FOLLOWS,
        jobs.c.leader_id == bindparam("leader_id", type_=Identifier),
        jobs.c.user_id.is_not_distinct_from(bindparam("user_id", type_=String)),
    )


def fresh_result(
    transaction: Transaction, kind: str, unique_key: str, user_id: str | None, *, seconds: float
) -> FreshResult | None:
    """The newest result of a key not older than so many seconds; kept as it is until it has been copied.

    The asker's own comes first if it still waits for them. Others' count only where the job did the work: a copy is as
    old as its source, and no source itself.
    """
    parameters = {"kind": kind, "unique_key": unique_key, "user_id": user_id, "seconds_ago": -seconds}
    return transaction.fetch_one(FreshResult, _fresh_result(transaction.dialect), parameters)


@built_once
def _fresh_result(dialect: Dialect) -> Select[Any]:
    own = jobs.c.user_id.is_not_distinct_from(bindparam("user_id", type_=String))
    waits = own & (jobs.c.state == JobState.SUCCEEDED.value)
    made_at = func.coalesce(jobs.c.result_at, jobs.c.completed_at)
    oldest = dialect.later(dialect.now(), bindparam("seconds_ago", type_=Float))
    return (
        select(jobs.c.id, waits.label("waits"))
        .where(
            *_same_work(),
            jobs.c.state.in_([JobState.SUCCEEDED.value, JobState.COMMITTED.value, JobState.ABANDONED.value]),
            jobs.c.result.is_not(None),
            or_(jobs.c.leader_id.is_(None), waits),
            made_at >= oldest,
        )
        .order_by(case((waits, 0), else_=1), made_at.desc())
        .limit(1)
        .with_for_update(read=True)
    )


def _same_work() -> tuple[ColumnElement[bool], ...]:
    return jobs.c.kind == bindparam("kind"), jobs.c.unique_key == bindparam("unique_key")


def mark_followed(transaction: Transaction, job_id: UUID) -> None:
    """Others wait for this job now."""
    transaction.execute(_mark_followed(transaction.dialect), {"job_id": job_id})


@built_once
def _mark_followed(_: Dialect) -> Update:
    return update(jobs).where(by_id()).values(has_followers=true())
