"""Writing what items copy of their jobs once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Integer, Select, Update, bindparam, or_, select, update

from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


def next_jobs(transaction: Transaction, after: UUID, *, limit: int) -> list[UUID]:
    """A stretch of all jobs, in the order of their ids."""
    return transaction.values(UUID, _next_jobs(transaction.dialect), {"after": after, "limit": limit})


@built_once
def _next_jobs(_: Dialect) -> Select[Any]:
    return (
        select(jobs.c.id)
        .where(jobs.c.id > bindparam("after", type_=Identifier))
        .order_by(jobs.c.id)
        .limit(bindparam("limit", type_=Integer))
    )


def copy_owner_and_kind(transaction: Transaction, job_ids: Sequence[UUID]) -> int:
    """The owner and the kind of these jobs, to those of their items that say otherwise; the answer is to how many."""
    return transaction.execute(_copy_owner_and_kind(transaction.dialect), {"job_ids": job_ids})


@built_once
def _copy_owner_and_kind(dialect: Dialect) -> Update:
    return (
        update(job_items)
        .where(
            dialect.among(job_items.c.job_id, "job_ids"),
            jobs.c.id == job_items.c.job_id,
            or_(job_items.c.user_id.is_distinct_from(jobs.c.user_id), job_items.c.kind != jobs.c.kind),
        )
        .values(user_id=jobs.c.user_id, kind=jobs.c.kind)
    )
