"""All of a job's items for an export, a stretch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Integer, Select, bindparam, case, literal_column, select

from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ItemRole, ItemStatus
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_items
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


class ExportRow(NamedTuple):
    """What a grid shows of an item."""

    position: int
    status: str
    attempts: int
    error_code: str | None
    last_error: str | None
    result: JSON
    normalized: JSON
    """Shown until there is a result, so it does not come once there is one."""


def rows_to_export(
    transaction: Transaction, job_id: UUID, statuses: Sequence[ItemStatus] | None, *, position: int, limit: int
) -> list[ExportRow]:
    """A stretch of a job's items for an export: what a grid shows, and nothing else."""
    parameters: dict[str, Any] = {"job_id": job_id, "position": position, "limit": limit}
    if statuses is not None:
        parameters["statuses"] = [status.value for status in statuses]
    rows = transaction.rows(_rows_to_export(transaction.dialect, some=statuses is not None), parameters)
    return list(map(ExportRow._make, transaction.dialect.unbundle(rows)))


@built_once
def _rows_to_export(dialect: Dialect, *, some: bool) -> Select[Any]:
    stretch = (
        select(
            job_items.c.position,
            job_items.c.status,
            job_items.c.attempts,
            job_items.c.error_code,
            job_items.c.last_error,
            job_items.c.result_json,
            case((job_items.c.result_json.is_(None), job_items.c.normalized_json)),
        )
        .where(
            job_items.c.job_id == bindparam("job_id", type_=Identifier),
            job_items.c.position > bindparam("position", type_=Integer),
            job_items.c.role == literal_column(f"'{ItemRole.ITEM}'"),
        )
        .order_by(job_items.c.position)
        .limit(bindparam("limit", type_=Integer))
    )
    if some:
        stretch = stretch.where(dialect.among(job_items.c.status, "statuses"))
    return dialect.bundle(stretch)
