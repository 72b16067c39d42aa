"""Persisting what a plan yields, in batches, under the plan item's lease.

Each batch is one transaction: the items and the job's new total, if the lease is still ours and nobody has planned
further meanwhile. So a plan that dies half way is taken up by the next worker behind the last item persisted, and a
plan that lost its lease cannot add a row. A batch that was added forgives the deaths of workers before it: the plan
gets on.

What a batch has added may be claimed once it has committed, while the plan goes on. So the job's row, which claims and
records need, is written last and held for as short as can be.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import WorkerCrashed
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind
from penstock.store.queries import job_items as queries
from penstock.store.queries.job_items import NewItem
from penstock.store.transaction import Transaction


def add_planned(
    transaction: Transaction, kind: Kind, plan_item: ClaimedItem, items: Sequence[NewItem], *, after: int
) -> int:
    """Add planned items behind position ``after``; the answer is the last position."""
    lost = WorkerCrashed(f"the plan of job {plan_item.job_id} lost its lease; another worker goes on with it")
    # The lease first, and locked: a condition on the update of the job would be judged by how things were before the
    # update had waited for whoever took the lease away.
    if not queries.hold_plan(transaction, plan_item.item_id, plan_item.lease, total=after):
        raise lost
    if not items:
        return after
    queries.forgive_plan(transaction, plan_item.item_id)
    last = queries.insert_items(
        transaction, items, after=after, job_id=plan_item.job_id, user_id=plan_item.user_id, kind=kind.name
    )
    if not queries.extend_plan(transaction, plan_item.job_id, total=after, more=len(items)):
        raise lost
    transaction.wake(kind.name)
    return last
