"""Writing outcomes back: items behind their fence. What their jobs count and become: ``settle``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Boolean, Float, Integer, Select, String, Text, Update, bindparam, case, null, select, update

from penstock.lifecycle.states import ItemStatus
from penstock.store.dialects.dialect import Dialect, Field
from penstock.store.queries.built_once import built_once
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.queries.visibility import by_ids
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, RowNumber

_NO_LEASE = {"lease": null(), "locked_by": null(), "locked_at": null(), "lock_expires_at": null()}


FinishedItem = tuple[int, str | None]
"""The id of an item that is done, and its result as JSON text; a plain tuple, because there are thousands."""
_FINISHED_FIELDS = (Field("id", RowNumber), Field("result", Text()))


def finish_items(transaction: Transaction, lease: UUID, items: Sequence[FinishedItem]) -> int:
    """DONE for the items of one lease that is still ours; the answer is how many landed."""
    parameters = {"lease": lease, **transaction.dialect.parameters("finished", _FINISHED_FIELDS, items)}
    return transaction.execute(_finish_items(transaction.dialect), parameters)


@built_once
def _finish_items(dialect: Dialect) -> Update:
    rows = dialect.rows("finished", _FINISHED_FIELDS)
    return (
        update(job_items)
        .where(job_items.c.id == rows.c.id, dialect.check(job_items.c.lease == bindparam("lease", type_=Identifier)))
        .values(
            status=ItemStatus.DONE.value,
            result_json=dialect.json(rows.c.result),
            last_error=null(),
            error_code=null(),
            error_type=null(),
            error_class=null(),
            killed_by=null(),
            traceback=null(),
            updated_at=dialect.now(),
            **_NO_LEASE,
        )
    )


def finish_held_items(transaction: Transaction, lease: UUID, items: Sequence[FinishedItem]) -> list[int]:
    """The same; the answer is the ids of those that landed."""
    parameters = {"lease": lease, **transaction.dialect.parameters("finished", _FINISHED_FIELDS, items)}
    return transaction.values(int, _finish_held_items(transaction.dialect), parameters)


@built_once
def _finish_held_items(dialect: Dialect) -> Update:
    return _finish_items(dialect).returning(job_items.c.id)


class EndedItem(NamedTuple):
    """An item that ended without a result, or goes back: its status says which."""

    id: int
    lease: UUID
    status: str
    error: str | None
    code: str | None
    error_type: str | None
    error_class: str | None
    killed_by: str | None
    traceback: str | None
    delay: float | None
    """Seconds until it is tried again."""
    counts: bool
    """Is a try used up?"""
    not_found: int
    """How many tries ended because what was looked for is not there: this one, or none."""
    deaths: int
    """How many workers died while they held it."""


_ENDED_ITEMS = HandedRows(
    "ended",
    EndedItem,
    id=RowNumber,
    lease=Identifier(),
    status=String(),
    error=Text(),
    code=String(),
    error_type=String(),
    error_class=String(),
    killed_by=String(),
    traceback=Text(),
    delay=Float(),
    counts=Boolean(),
    not_found=Integer(),
    deaths=Integer(),
)


class LandedItem(NamedTuple):
    """An item whose outcome landed; when it is ready again, if it went back."""

    id: int
    ready_at: datetime | None


def end_items(transaction: Transaction, items: Sequence[EndedItem]) -> list[LandedItem]:
    """Any other ending, or the way back, for the items whose lease is still ours."""
    parameters = _ENDED_ITEMS.parameters(transaction.dialect, items)
    return transaction.fetch(LandedItem, _end_items(transaction.dialect), parameters)


@built_once
def _end_items(dialect: Dialect) -> Update:
    rows = _ENDED_ITEMS.table(dialect)
    goes_back = rows.c.status == ItemStatus.PENDING.value
    uncounted_tries = case((rows.c.counts, 0), else_=1)
    values_if_counted = {
        "last_error": rows.c.error,
        "error_code": rows.c.code,
        "error_type": rows.c.error_type,
        "error_class": rows.c.error_class,
        "killed_by": rows.c.killed_by,
        "traceback": rows.c.traceback,
    }
    return (
        update(job_items)
        .where(job_items.c.id == rows.c.id, dialect.check(job_items.c.lease == rows.c.lease))
        .values(
            status=rows.c.status,
            ready_at=case((goes_back, dialect.later(dialect.now(), rows.c.delay)), else_=null()),
            attempts=job_items.c.attempts - uncounted_tries,
            not_found_attempts=job_items.c.not_found_attempts + rows.c.not_found,
            deaths=job_items.c.deaths + rows.c.deaths,
            updated_at=dialect.now(),
            **{
                name: case((rows.c.counts, value), else_=job_items.c[name]) for name, value in values_if_counted.items()
            },
            **_NO_LEASE,
        )
        .returning(job_items.c.id, job_items.c.ready_at)
    )


def free_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> list[UUID]:
    """Those of the jobs that nobody else has locked, locked."""
    return transaction.values(UUID, _free_jobs(transaction.dialect), {"job_ids": job_ids})


@built_once
def _free_jobs(dialect: Dialect) -> Select[Any]:
    return (
        select(jobs.c.id).where(by_ids(dialect)).order_by(jobs.c.id).with_for_update(skip_locked=True, key_share=True)
    )


def free_items(transaction: Transaction, item_ids: Sequence[int]) -> list[int]:
    """Those of the items that nobody else has locked, locked."""
    return transaction.values(int, _free_items(transaction.dialect), {"item_ids": item_ids})


@built_once
def _free_items(dialect: Dialect) -> Select[Any]:
    return _known_items(dialect).order_by(job_items.c.id).with_for_update(skip_locked=True, key_share=True)


def known_items(transaction: Transaction, item_ids: Sequence[int]) -> list[int]:
    """Those of the items that there are."""
    return transaction.values(int, _known_items(transaction.dialect), {"item_ids": item_ids})


@built_once
def _known_items(dialect: Dialect) -> Select[Any]:
    return select(job_items.c.id).where(dialect.among(job_items.c.id, "item_ids"))
