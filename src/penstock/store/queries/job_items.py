"""Adding items to a job, given with it or planned later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Insert, Integer, Select, String, Text, Update, bindparam, case, insert, literal, select, update

from penstock.lifecycle.states import ItemRole, ItemStatus, JobState
from penstock.store.dialects.dialect import Dialect, Field
from penstock.store.queries.built_once import built_once
from penstock.store.queries.visibility import by_id
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, RowNumber

NewItem = tuple[str, str | None]
"""An item's input as JSON text, and the same in canonical fields where the plan says it: thousands come at a time."""

_NEW_ITEMS = (
    Field("position", Integer()), Field("input", Text(), long=True), Field("normalized", Text(), long=True),
)  # fmt: skip


def insert_items(
    transaction: Transaction, items: Sequence[NewItem], *, after: int, job_id: UUID, user_id: str | None, kind: str
) -> int:
    """Items of one job, at the positions behind ``after``; the answer is the last one."""
    rows = [(position, text, normalized) for position, (text, normalized) in enumerate(items, after + 1)]
    parameters = transaction.dialect.parameters("new_items", _NEW_ITEMS, rows)
    parameters |= {"job_id": job_id, "user_id": user_id, "kind": kind}
    transaction.execute(_insert_items(transaction.dialect), parameters)
    return after + len(rows)


@built_once
def _insert_items(dialect: Dialect) -> Insert:
    rows = dialect.rows("new_items", _NEW_ITEMS)
    source = select(
        bindparam("job_id", type_=Identifier),
        bindparam("user_id", type_=String),
        bindparam("kind", type_=String),
        literal(ItemRole.ITEM.value),
        rows.c.position,
        literal(ItemStatus.PENDING.value),
        dialect.json(rows.c.input),
        dialect.json(rows.c.normalized),
        dialect.now(),
    )
    columns = [
        "job_id", "user_id", "kind", "role", "position", "status", "input_json", "normalized_json", "updated_at",
    ]  # fmt: skip
    return insert(job_items).from_select(columns, source)


def hold_plan(transaction: Transaction, item_id: int, lease: UUID, *, total: int) -> bool:
    """Is the lease on a plan's item still ours, and are ``total`` items there? If so it is locked until this commits:
    nobody takes it, and nobody else plans.
    """
    parameters = {"item_id": item_id, "lease": lease, "total": total}
    return bool(transaction.values(int, _hold_plan(transaction.dialect), parameters))


@built_once
def _hold_plan(_: Dialect) -> Select[Any]:
    total_items = select(jobs.c.total_items).where(jobs.c.id == job_items.c.job_id).scalar_subquery()
    return (
        select(job_items.c.id)
        .where(
            job_items.c.id == bindparam("item_id", type_=RowNumber),
            job_items.c.lease == bindparam("lease", type_=Identifier),
            total_items == bindparam("total", type_=Integer),
        )
        .with_for_update(key_share=True)
    )


def extend_plan(transaction: Transaction, job_id: UUID, *, total: int, more: int) -> bool:
    """A planning job has so many more items to hand out, if ``total`` were there before; False when there were not."""
    parameters = {"job_id": job_id, "total": total, "more": more}
    return transaction.execute(_extend_plan(transaction.dialect), parameters) == 1


@built_once
def _extend_plan(dialect: Dialect) -> Update:
    now = dialect.now()
    total_items = jobs.c.total_items + bindparam("more", type_=Integer)
    flows = jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])
    sooner = case((jobs.c.next_claim_at < now, jobs.c.next_claim_at), else_=now)
    return (
        update(jobs)
        .where(by_id(), jobs.c.total_items == bindparam("total", type_=Integer))
        .values(
            total_items=total_items,
            last_claimable=total_items,
            next_claim_at=case((flows, sooner), else_=jobs.c.next_claim_at),
            last_heartbeat=now,
            updated_at=now,
        )
    )


def forgive_plan(transaction: Transaction, item_id: int) -> None:
    """A plan that makes progress starts again with no deaths."""
    transaction.execute(_forgive_plan(transaction.dialect), {"item_id": item_id})


@built_once
def _forgive_plan(_: Dialect) -> Update:
    mine = job_items.c.id == bindparam("item_id", type_=RowNumber)
    return update(job_items).where(mine, job_items.c.deaths > 0).values(deaths=0)
