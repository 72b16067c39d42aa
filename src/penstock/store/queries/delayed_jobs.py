"""Jobs that are released when their time has come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Float, Integer, Select, Update, bindparam, func, select, update

from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.visibility import by_id
from penstock.store.tables import JOB_IS_DELAYED, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Moment


class DelayedJob(NamedTuple):
    """A job whose time has come."""

    id: UUID
    kind: str


def set_run_at(transaction: Transaction, job_id: UUID, run_at: datetime | None, *, delay: float | None = None) -> None:
    """When a job is to be released, or for which tick it is; with ``delay`` so many seconds from now."""
    parameters = {"job_id": job_id, "run_at": run_at, "delay": delay}
    transaction.execute(_set_run_at(transaction.dialect), parameters)


@built_once
def _set_run_at(dialect: Dialect) -> Update:
    later = dialect.later(dialect.now(), bindparam("delay", type_=Float))
    return update(jobs).where(by_id()).values(run_at=func.coalesce(bindparam("run_at", type_=Moment), later))


def due_jobs(transaction: Transaction, kinds: Sequence[str], *, limit: int) -> list[DelayedJob]:
    """Jobs of some kinds whose time has come, those first that have waited longest."""
    return transaction.fetch(DelayedJob, _due_jobs(transaction.dialect), {"kinds": kinds, "limit": limit})


@built_once
def _due_jobs(dialect: Dialect) -> Select[Any]:
    return (
        select(jobs.c.id, jobs.c.kind)
        .where(JOB_IS_DELAYED, jobs.c.run_at <= dialect.now(), dialect.among(jobs.c.kind, "kinds"))
        .order_by(jobs.c.run_at, jobs.c.id)
        .limit(bindparam("limit", type_=Integer))
    )


def lock_due(transaction: Transaction, job_id: UUID) -> bool:
    """Is this job still to be released, and has nobody else locked it?"""
    return bool(transaction.values(UUID, _lock_due(transaction.dialect), {"job_id": job_id}))


@built_once
def _lock_due(dialect: Dialect) -> Select[Any]:
    is_due = dialect.check(jobs.c.run_at <= dialect.now())
    return select(jobs.c.id).where(by_id(), JOB_IS_DELAYED, is_due).with_for_update(skip_locked=True, key_share=True)
