"""Items in the hands of workers, and jobs whose worker died."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    String,
    Update,
    and_,
    bindparam,
    func,
    select,
)

from penstock.lifecycle.states import ItemStatus
from penstock.lifecycle.transitions import RESCUE
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.change_state import ChangedJob, change_state
from penstock.store.queries.visibility import by_ids
from penstock.store.tables import ITEM_IS_OPEN, job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Moment


class HeldItem(NamedTuple):
    """An item in a worker's hands."""

    id: int
    job_id: UUID
    kind: str
    role: str
    deaths: int
    lease: UUID
    alone: UUID | None
    locked_by: str


def expired_items(
    transaction: Transaction, *, before: datetime | None, spared_workers: Sequence[str], limit: int
) -> list[HeldItem]:
    """Items whose lease has run out, ``before`` then if that is given, but for those of some workers."""
    parameters = {"before": before, "spared_workers": list(spared_workers), "limit": limit}
    return transaction.fetch(HeldItem, _expired_items(transaction.dialect), parameters)


@built_once
def _expired_items(dialect: Dialect) -> Select[Any]:
    moment = func.coalesce(bindparam("before", type_=Moment), dialect.now())
    is_spared = dialect.among(job_items.c.locked_by, "spared_workers")
    return _held_items(and_(job_items.c.lock_expires_at < moment, ~is_spared))


def items_held_by(transaction: Transaction, worker: str, *, limit: int) -> list[HeldItem]:
    """Items in the hands of one worker."""
    return transaction.fetch(HeldItem, _items_held_by(transaction.dialect), {"worker": worker, "limit": limit})


@built_once
def _items_held_by(_: Dialect) -> Select[Any]:
    return _held_items(_of_worker())


def holds_any(transaction: Transaction, worker: str) -> bool:
    """Is anything in the hands of that worker, also what somebody has locked?"""
    return transaction.value(int, _holds_any(transaction.dialect), {"worker": worker}) is not None


@built_once
def _holds_any(_: Dialect) -> Select[Any]:
    is_held = job_items.c.status == ItemStatus.PROCESSING.value
    return select(job_items.c.id).where(is_held, ITEM_IS_OPEN, _of_worker()).limit(1)


def _of_worker() -> ColumnElement[bool]:
    return job_items.c.locked_by == bindparam("worker", type_=String)


def _held_items(condition: ColumnElement[bool]) -> Select[Any]:
    """Locked with their jobs; what somebody else has locked is left out, and so are all items of a locked job."""
    return (
        select(*(job_items.c[name] for name in HeldItem._fields))
        .select_from(job_items.join(jobs, jobs.c.id == job_items.c.job_id))
        .where(job_items.c.status == ItemStatus.PROCESSING.value, ITEM_IS_OPEN, condition)
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(skip_locked=True, key_share=True, of=(job_items, jobs))
    )


def rescue_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> list[ChangedJob]:
    """RESCUE for the running jobs whose items were held by a worker that died."""
    return transaction.fetch(ChangedJob, _rescue_jobs(transaction.dialect), {"job_ids": job_ids})


@built_once
def _rescue_jobs(dialect: Dialect) -> Update:
    return change_state(dialect, RESCUE, by_ids(dialect), {"deaths": jobs.c.deaths + 1})
