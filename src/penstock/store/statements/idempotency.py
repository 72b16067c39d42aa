"""Idempotency keys: which request was made under a key, and what it led to."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Insert, Select, String, Update, bindparam, select, update

from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import idempotency_keys as keys
from penstock.store.tables import jobs
from penstock.store.types import Identifier


def _by_key() -> Any:
    return keys.c.key == bindparam("the_key", type_=String)


@built_once
def take_key(dialect: Dialect) -> Insert:
    """Take a key that nobody has used; no row when somebody has, and who is just doing so is waited for."""
    # A program of the version before, beside this one, writes its keys with its jobs.
    before = select(jobs.c.id).where(jobs.c.idempotency_key == bindparam("the_key", type_=String)).exists()
    source = select(
        bindparam("the_key", type_=String),
        bindparam("the_request", type_=String),
        bindparam("the_job_id", type_=Identifier),
        bindparam("the_resource_id", type_=Identifier),
        dialect.now(),
    ).where(~before)
    columns = ["key", "request", "job_id", "resource_id", "created_at"]
    return dialect.insert_unless_taken(keys).from_select(columns, source).returning(keys.c.key)


@built_once
def used_key(dialect: Dialect) -> Select[Any]:
    """What a key was used for, kept as it is until this transaction ends."""
    return select(keys.c.request, keys.c.job_id, keys.c.resource_id).where(_by_key()).with_for_update()


@built_once
def job_with_key(dialect: Dialect) -> Select[Any]:
    """The job that a program of the version before has recorded with a key."""
    return select(jobs.c.id).where(jobs.c.idempotency_key == bindparam("the_key", type_=String))


@built_once
def point_key(dialect: Dialect) -> Update:
    """The key has led to this job."""
    return update(keys).where(_by_key()).values(job_id=bindparam("the_job_id", type_=Identifier))
