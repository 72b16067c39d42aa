"""Idempotency keys: which request was made under a key, and what it led to."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Insert, Select, String, Update, bindparam, select, update

from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import idempotency_keys as keys
from penstock.store.tables import jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


class UsedKey(NamedTuple):
    """What a key was used for."""

    request: str | None
    """The digest of the request; None for a key that an older version kept."""
    job_id: UUID | None
    resource_id: UUID | None


def take_key(
    transaction: Transaction, key: str, request: str, *, job_id: UUID | None, resource_id: UUID | None
) -> bool:
    """Take a key that nobody has used; False when somebody has, and who is just doing so is waited for."""
    parameters = {"key": key, "request": request, "job_id": job_id, "resource_id": resource_id}
    return bool(transaction.values(str, _take_key(transaction.dialect), parameters))


@built_once
def _take_key(dialect: Dialect) -> Insert:
    # A program of the version before, beside this one, writes its keys with its jobs.
    before = select(jobs.c.id).where(jobs.c.idempotency_key == bindparam("key", type_=String)).exists()
    source = select(
        bindparam("key", type_=String),
        bindparam("request", type_=String),
        bindparam("job_id", type_=Identifier),
        bindparam("resource_id", type_=Identifier),
        dialect.now(),
    ).where(~before)
    columns = ["key", "request", "job_id", "resource_id", "created_at"]
    return dialect.insert_unless_taken(keys).from_select(columns, source).returning(keys.c.key)


def used_key(transaction: Transaction, key: str) -> UsedKey | None:
    """What a key was used for, kept as it is until this transaction ends."""
    return transaction.fetch_one(UsedKey, _used_key(transaction.dialect), {"key": key})


@built_once
def _used_key(_: Dialect) -> Select[Any]:
    return select(keys.c.request, keys.c.job_id, keys.c.resource_id).where(_by_key()).with_for_update()


def job_with_key(transaction: Transaction, key: str) -> UUID | None:
    """The job that a program of the version before has recorded with a key."""
    return transaction.value(UUID, _job_with_key(transaction.dialect), {"key": key})


@built_once
def _job_with_key(_: Dialect) -> Select[Any]:
    return select(jobs.c.id).where(jobs.c.idempotency_key == bindparam("key", type_=String))


def point_key(transaction: Transaction, key: str, job_id: UUID) -> None:
    """The key has led to this job."""
    transaction.execute(_point_key(transaction.dialect), {"key": key, "job_id": job_id})


@built_once
def _point_key(_: Dialect) -> Update:
    return update(keys).where(_by_key()).values(job_id=bindparam("job_id", type_=Identifier))


def _by_key() -> ColumnElement[bool]:
    return keys.c.key == bindparam("key", type_=String)
