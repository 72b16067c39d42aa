"""What a worker's heartbeat asks: longer leases, and which of its jobs were stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Float, Select, Text, Update, bindparam, select, update

from penstock.lifecycle.states import JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, RowNumber


def extend_leases(
    transaction: Transaction, item_ids: Sequence[int], leases: Sequence[UUID], *, seconds: float
) -> list[int]:
    """Longer leases for the items we still hold; those it does not return are lost, or locked by others."""
    parameters = {"items": item_ids, "leases": leases, "seconds": seconds}
    return transaction.values(int, _extend_leases(transaction.dialect), parameters)


@built_once
def _extend_leases(dialect: Dialect) -> Update:
    free = _ours(dialect).with_for_update(skip_locked=True, key_share=True).cte("free")
    return (
        update(job_items)
        .where(job_items.c.id == free.c.id)
        .values(lock_expires_at=dialect.later(dialect.now(), bindparam("seconds", type_=Float)))
        .returning(job_items.c.id)
    )


def held_items(transaction: Transaction, item_ids: Sequence[int], leases: Sequence[UUID]) -> list[int]:
    """The items that are still ours, also those that somebody has locked."""
    return transaction.values(int, _held_items(transaction.dialect), {"items": item_ids, "leases": leases})


@built_once
def _held_items(dialect: Dialect) -> Select[Any]:
    return _ours(dialect)


def _ours(dialect: Dialect) -> Select[Any]:
    """The items of the list whose lease is one of the leases."""
    ours = dialect.check(dialect.among(job_items.c.lease, "leases"))
    return select(job_items.c.id).where(dialect.among(job_items.c.id, "items"), ours)


def beat(transaction: Transaction, job_ids: Sequence[UUID]) -> None:
    """A sign of life for the jobs we work on; who has one locked is a sign of life too, and not worth a deadlock."""
    transaction.execute(_beat(transaction.dialect), {"jobs": job_ids})


@built_once
def _beat(dialect: Dialect) -> Update:
    running = (
        select(jobs.c.id)
        .where(dialect.among(jobs.c.id, "jobs"), jobs.c.state == JobState.RUNNING.value)
        .with_for_update(skip_locked=True, key_share=True)
    )
    return update(jobs).where(jobs.c.id.in_(running)).values(last_heartbeat=dialect.now())


def stopped_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> list[UUID]:
    """Which of these jobs are not running any more: their handlers need not continue."""
    return transaction.values(UUID, _stopped_jobs(transaction.dialect), {"jobs": job_ids})


@built_once
def _stopped_jobs(dialect: Dialect) -> Select[Any]:
    flowing = [JobState.QUEUED.value, JobState.RUNNING.value, JobState.PAUSED.value]
    return select(jobs.c.id).where(dialect.among(jobs.c.id, "jobs"), jobs.c.state.not_in(flowing))


def note_alone(transaction: Transaction, item_id: int, lease: UUID) -> None:
    """The item runs alone in its worker under this lease, if that still holds."""
    transaction.execute(_note_alone(transaction.dialect), {"item_id": item_id, "lease": lease})


@built_once
def _note_alone(_: Dialect) -> Update:
    lease = bindparam("lease", type_=Identifier)
    mine = job_items.c.id == bindparam("item_id", type_=RowNumber)
    return update(job_items).where(mine, job_items.c.lease == lease).values(alone=lease)


def set_message(transaction: Transaction, job_id: UUID, message: str) -> None:
    """Set a running job's message for people."""
    transaction.execute(_set_message(transaction.dialect), {"job_id": job_id, "message": message})


@built_once
def _set_message(dialect: Dialect) -> Update:
    return (
        update(jobs)
        .where(jobs.c.id == bindparam("job_id", type_=Identifier), jobs.c.state == JobState.RUNNING.value)
        .values(message=bindparam("message", type_=Text), last_heartbeat=dialect.now(), updated_at=dialect.now())
    )
