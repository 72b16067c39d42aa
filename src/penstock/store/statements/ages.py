"""How long the oldest item has waited or run, and which leases have run out: figures for whoever watches."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, Select, String, bindparam, func, select

from penstock.lifecycle.states import ItemStatus
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import ITEM_IS_OPEN, job_items


@built_once
def oldest_item(dialect: Dialect) -> Select[Any]:
    """When the open item of a kind and status that changed longest ago did, and the database's time now."""
    return (
        select(job_items.c.updated_at, dialect.now().label("now"))
        .where(
            job_items.c.status == bindparam("the_status", type_=String),
            ITEM_IS_OPEN,
            job_items.c.kind == bindparam("the_kind", type_=String),
        )
        .order_by(job_items.c.updated_at, job_items.c.id)
        .limit(1)
    )


@built_once
def expired_leases(dialect: Dialect) -> Select[Any]:
    """How many leases have run out and were not swept yet, up to a bound."""
    some = (
        select(job_items.c.id)
        .where(
            job_items.c.status == ItemStatus.PROCESSING.value, ITEM_IS_OPEN, job_items.c.lock_expires_at < dialect.now()
        )
        .limit(bindparam("the_limit", type_=Integer))
        .subquery("some")
    )
    return select(func.count()).select_from(some)
