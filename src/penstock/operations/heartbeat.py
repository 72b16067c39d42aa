"""A worker's sign of life: longer leases, and news of jobs that were stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from penstock.lifecycle.job import Claimed
from penstock.lifecycle.payloads import storable_text
from penstock.store.engine import Transaction
from penstock.store.statements import heartbeat as statements


def extend(transaction: Transaction, held: Sequence[Claimed], lease_seconds: float) -> frozenset[int]:
    """Extend the leases on ``held``; the answer is the ids of the items that are ours no more."""
    ways = transaction.ways
    ids = [one.item_id for one in held]
    leases = list({one.lease for one in held})
    parameters = {"the_items": ids, "the_leases": leases, "the_lease_seconds": lease_seconds}
    kept = transaction.run(statements.extend_leases(ways), parameters).scalars()
    transaction.run(statements.beat(ways), {"the_jobs": list({one.job_id for one in held})})
    return frozenset(ids).difference(kept)


def stopped(transaction: Transaction, job_ids: Iterable[UUID]) -> frozenset[UUID]:
    """Which of these jobs do not run any more, or not with us."""
    parameters = {"the_jobs": list(job_ids)}
    return frozenset(transaction.run(statements.stopped_jobs(transaction.ways), parameters).scalars())


def note_alone(transaction: Transaction, claimed: Claimed) -> None:
    """This item is all its worker has in hand, for as long as this lease holds."""
    parameters = {"the_item_id": claimed.item_id, "the_lease": claimed.lease}
    transaction.run(statements.note_alone(transaction.ways), parameters)


def say(transaction: Transaction, job_id: UUID, message: str) -> None:
    """Tell the people who watch a running job what it is doing."""
    transaction.run(
        statements.say(transaction.ways), {"the_job_id": job_id, "the_message": storable_text(message)[:2000]}
    )
