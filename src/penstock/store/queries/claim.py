"""The items that a claim takes. Which jobs are due: ``line``; what is written about the jobs: ``served_jobs``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Float,
    Integer,
    Select,
    String,
    Update,
    bindparam,
    func,
    null,
    select,
    update,
)

from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ItemStatus
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.tables import job_items
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier

_PENDING = ItemStatus.PENDING.value


class NewLease(NamedTuple):
    """What items are taken with: the lease is the fence of everything that is written about them later."""

    lease: UUID
    worker: str
    lease_seconds: float


def lease_values(dialect: Dialect) -> dict[str, Any]:
    """What taking an item writes, by the parameters of a :class:`NewLease`."""
    now = dialect.now()
    return {
        "status": ItemStatus.PROCESSING.value,
        "attempts": job_items.c.attempts + 1,
        "lease": bindparam("lease", type_=Identifier),
        "locked_by": bindparam("worker", type_=String),
        "locked_at": now,
        "lock_expires_at": dialect.later(now, bindparam("lease_seconds", type_=Float)),
        "ready_at": null(),
        "updated_at": now,
    }


class TakenItem(NamedTuple):
    """An item that was just taken from a job that is known."""

    id: int
    role: str
    position: int
    attempts: int
    input_json: JSON
    normalized_json: JSON


class TakenOfJob(NamedTuple):
    """An item that was just taken from one of several jobs."""

    id: int
    role: str
    position: int
    attempts: int
    input_json: JSON
    normalized_json: JSON
    job_id: UUID


class TakenAgain(NamedTuple):
    """An item that came back and was just taken: of fresh ones nobody need ask what their tries were."""

    id: int
    role: str
    position: int
    attempts: int
    input_json: JSON
    normalized_json: JSON
    job_id: UUID
    not_found_attempts: int
    earlier_not_found: int


class Stretch(NamedTuple):
    """The items of one job between two positions."""

    job_id: UUID
    first: int
    last: int


TAKEN_COLUMNS = tuple(job_items.c[name] for name in TakenItem._fields)
_STRETCHES = HandedRows("stretches", Stretch, job_id=Identifier(), first=Integer(), last=Integer())


def take_stretch(transaction: Transaction, stretch: Stretch, lease: NewLease) -> list[TakenItem]:
    """Take the fresh items of one job between two positions."""
    parameters = lease._asdict() | stretch._asdict()
    return transaction.fetch(TakenItem, _take_stretch(transaction.dialect), parameters)


@built_once
def _take_stretch(dialect: Dialect) -> Update:
    return (
        update(job_items)
        .where(
            job_items.c.job_id == bindparam("job_id", type_=Identifier),
            job_items.c.position.between(bindparam("first", type_=Integer), bindparam("last", type_=Integer)),
            dialect.check(job_items.c.status == _PENDING),
        )
        .values(lease_values(dialect))
        .returning(*TAKEN_COLUMNS)
    )


def take_stretches(transaction: Transaction, stretches: Sequence[Stretch], lease: NewLease) -> list[TakenOfJob]:
    """Take the fresh items of several jobs, each between two positions."""
    parameters = lease._asdict() | _STRETCHES.parameters(transaction.dialect, stretches)
    return transaction.fetch(TakenOfJob, _take_stretches(transaction.dialect), parameters)


@built_once
def _take_stretches(dialect: Dialect) -> Update:
    stretches = _STRETCHES.table(dialect)
    return (
        update(job_items)
        .where(
            job_items.c.job_id == stretches.c.job_id,
            job_items.c.position >= stretches.c.first,
            job_items.c.position <= stretches.c.last,
            dialect.check(job_items.c.status == _PENDING),
        )
        .values(lease_values(dialect))
        .returning(*TAKEN_COLUMNS, job_items.c.job_id)
    )


class ReturnedItem(NamedTuple):
    """An item that came back, and how many workers died while they held it."""

    id: int
    deaths: int


def returned_items(transaction: Transaction, job_ids: Sequence[UUID], limit: int) -> list[ReturnedItem]:
    """Items of these jobs that came back and may be tried again, those that waited longest first; locked."""
    parameters = {"job_ids": job_ids, "limit": limit}
    return transaction.fetch(ReturnedItem, _returned_items(transaction.dialect), parameters)


@built_once
def _returned_items(dialect: Dialect) -> Select[Any]:
    return (
        select(job_items.c.id, job_items.c.deaths)
        .where(
            dialect.among(job_items.c.job_id, "job_ids"),
            job_items.c.status == _PENDING,
            job_items.c.ready_at <= dialect.now(),
        )
        .order_by(job_items.c.ready_at)
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(skip_locked=True)
    )


def take_returned(transaction: Transaction, item_ids: Sequence[int], lease: NewLease) -> list[TakenAgain]:
    """Take items that came back, by their ids."""
    parameters = lease._asdict() | {"item_ids": item_ids}
    return transaction.fetch(TakenAgain, _take_returned(transaction.dialect), parameters)


@built_once
def _take_returned(dialect: Dialect) -> Update:
    return (
        update(job_items)
        .where(dialect.among(job_items.c.id, "item_ids"), job_items.c.status == _PENDING)
        .values(lease_values(dialect))
        .returning(*(job_items.c[name] for name in TakenAgain._fields))
    )


class SoonestReturn(NamedTuple):
    """When the first of a job's items that are in backoff may be tried."""

    job_id: UUID
    ready_at: datetime


def soonest_returned(transaction: Transaction, job_ids: Sequence[UUID]) -> list[SoonestReturn]:
    """When the first of the items that are still to come back may be tried, by job."""
    return transaction.fetch(SoonestReturn, _soonest_returned(transaction.dialect), {"job_ids": job_ids})


@built_once
def _soonest_returned(dialect: Dialect) -> Select[Any]:
    return (
        select(job_items.c.job_id, func.min(job_items.c.ready_at).label("ready_at"))
        .where(
            dialect.among(job_items.c.job_id, "job_ids"),
            job_items.c.status == _PENDING,
            job_items.c.ready_at.is_not(None),
        )
        .group_by(job_items.c.job_id)
    )
