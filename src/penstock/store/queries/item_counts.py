"""How many items are left, and how many failed of what."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Integer, Select, String, bindparam, func, literal, literal_column, select

from penstock.lifecycle.states import ACTIVE, ItemRole, ItemStatus, JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


class OpenCount(NamedTuple):
    """How many items of a kind are not over."""

    kind: str
    items: int


class ErrorCount(NamedTuple):
    """How many items of a job ended alike, and one of their errors."""

    status: str
    error_code: str | None
    items: int
    example: str | None


def open_counts(transaction: Transaction, user_id: str | None) -> list[OpenCount]:
    """By kind: how many items are not over, by the counters of the jobs that are not, which cost nothing to add up."""
    return transaction.fetch(
        OpenCount, _open_counts(transaction.dialect, own=user_id is not None), {"user_id": user_id}
    )


@built_once
def _open_counts(_: Dialect, *, own: bool) -> Select[Any]:
    active: list[ColumnElement[Any]] = [literal_column(f"'{state}'") for state in JobState if state in ACTIVE]
    conditions: list[ColumnElement[bool]] = [jobs.c.state.in_(active), jobs.c.leader_id.is_(None)]
    if own:
        conditions.append(jobs.c.user_id == bindparam("user_id", type_=String))
    open_items = func.coalesce(func.sum(jobs.c.total_items - jobs.c.processed_items), literal(0))
    return select(jobs.c.kind, open_items.label("items")).where(*conditions).group_by(jobs.c.kind)


def errors_by_code(transaction: Transaction, job_id: UUID, *, limit: int) -> list[ErrorCount]:
    """How many of a job's items failed, by status and error code, those that failed most first."""
    return transaction.fetch(ErrorCount, _errors_by_code(transaction.dialect), {"job_id": job_id, "limit": limit})


@built_once
def _errors_by_code(_: Dialect) -> Select[Any]:
    failed: list[ColumnElement[Any]] = [
        literal_column(f"'{status}'") for status in (ItemStatus.ERROR, ItemStatus.NOT_FOUND)
    ]
    return (
        select(
            job_items.c.status,
            job_items.c.error_code,
            func.count().label("items"),
            func.max(job_items.c.last_error).label("example"),
        )
        .where(
            job_items.c.job_id == bindparam("job_id", type_=Identifier),
            job_items.c.status.in_(failed),
            job_items.c.role == literal_column(f"'{ItemRole.ITEM}'"),
        )
        .group_by(job_items.c.status, job_items.c.error_code)
        .order_by(func.count().desc(), job_items.c.error_code)
        .limit(bindparam("limit", type_=Integer))
    )
