"""A worker's sign of life: longer leases, and news of jobs that were stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.payloads import storable_text
from penstock.store.engine import Transaction
from penstock.store.statements import heartbeat as statements


class Extended(NamedTuple):
    """The items whose lease is as it was."""

    lost: frozenset[int] = frozenset()
    """They are ours no more."""
    locked: frozenset[int] = frozenset()
    """They are ours, but somebody has their row locked: ask again soon."""


def extend(transaction: Transaction, held: Sequence[ClaimedItem], lease_seconds: float) -> Extended:
    """Extend the leases on ``held``, without waiting for anybody; the answer is where that was not possible."""
    dialect = transaction.dialect
    ids = [one.item_id for one in held]
    ours = {"the_items": ids, "the_leases": list({one.lease for one in held})}
    extended = transaction.run(statements.extend_leases(dialect), ours | {"the_lease_seconds": lease_seconds}).scalars()
    transaction.run(statements.beat(dialect), {"the_jobs": list({one.job_id for one in held})})
    left = frozenset(ids).difference(extended)
    if not left:
        return Extended()
    locked = left.intersection(transaction.run(statements.held_items(dialect), ours).scalars())
    return Extended(left - locked, locked)


def stopped(transaction: Transaction, job_ids: Iterable[UUID]) -> frozenset[UUID]:
    """Which of these jobs do not run any more, or not with us."""
    parameters = {"the_jobs": list(job_ids)}
    return frozenset(transaction.run(statements.stopped_jobs(transaction.dialect), parameters).scalars())


def note_alone(transaction: Transaction, claimed: ClaimedItem) -> None:
    """This item is all its worker has in hand, for as long as this lease holds."""
    parameters = {"the_item_id": claimed.item_id, "the_lease": claimed.lease}
    transaction.run(statements.note_alone(transaction.dialect), parameters)


def say(transaction: Transaction, job_id: UUID, message: str) -> None:
    """Tell the people who watch a running job what it is doing."""
    transaction.run(
        statements.say(transaction.dialect), {"the_job_id": job_id, "the_message": storable_text(message)[:2000]}
    )
