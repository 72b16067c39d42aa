"""How long the oldest item has waited or run, and which leases have run out: figures for whoever watches."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Integer, Select, String, bindparam, func, select

from penstock.lifecycle.states import ItemStatus
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import ITEM_IS_OPEN, job_items
from penstock.store.transaction import Transaction


class OldestItem(NamedTuple):
    """When an item last changed, and the database's time now."""

    updated_at: datetime
    now: datetime


def oldest_item(transaction: Transaction, kind: str, status: ItemStatus) -> OldestItem | None:
    """The open item of a kind and status that changed longest ago."""
    parameters = {"kind": kind, "status": status.value}
    return transaction.fetch_one(OldestItem, _oldest_item(transaction.dialect), parameters)


@built_once
def _oldest_item(dialect: Dialect) -> Select[Any]:
    return (
        select(job_items.c.updated_at, dialect.now().label("now"))
        .where(
            job_items.c.status == bindparam("status", type_=String),
            ITEM_IS_OPEN,
            job_items.c.kind == bindparam("kind", type_=String),
        )
        .order_by(job_items.c.updated_at, job_items.c.id)
        .limit(1)
    )


def expired_leases(transaction: Transaction, *, limit: int) -> int:
    """How many leases have run out and were not swept yet, counted no further than the limit."""
    [count] = transaction.values(int, _expired_leases(transaction.dialect), {"limit": limit})
    return count


@built_once
def _expired_leases(dialect: Dialect) -> Select[Any]:
    some = (
        select(job_items.c.id)
        .where(
            job_items.c.status == ItemStatus.PROCESSING.value, ITEM_IS_OPEN, job_items.c.lock_expires_at < dialect.now()
        )
        .limit(bindparam("limit", type_=Integer))
        .subquery("some")
    )
    return select(func.count()).select_from(some)
