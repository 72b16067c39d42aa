"""A worker's sign of life: longer leases, and news of jobs that were stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.payloads import storable_text
from penstock.store.queries import heartbeat as queries
from penstock.store.transaction import Transaction


class NotExtended(NamedTuple):
    """The items whose lease could not be extended."""

    lost: frozenset[int] = frozenset()
    """The lease is lost; another worker may have the item."""
    row_locked: frozenset[int] = frozenset()
    """The lease still holds, but another transaction has locked the row: try again soon."""


def extend(transaction: Transaction, items: Sequence[ClaimedItem], lease_seconds: float) -> NotExtended:
    """Extend the leases on ``items``, without waiting for locks; the answer is where that was not possible."""
    item_ids, leases = [item.item_id for item in items], list({item.lease for item in items})
    extended_ids = queries.extend_leases(transaction, item_ids, leases, seconds=lease_seconds)
    queries.beat(transaction, list({item.job_id for item in items}))
    remaining_ids = frozenset(item_ids).difference(extended_ids)
    if not remaining_ids:
        return NotExtended()
    locked_ids = remaining_ids.intersection(queries.held_items(transaction, item_ids, leases))
    return NotExtended(remaining_ids - locked_ids, locked_ids)


def find_stopped_jobs(transaction: Transaction, job_ids: Iterable[UUID]) -> frozenset[UUID]:
    """Which of these jobs are not running any more."""
    return frozenset(queries.stopped_jobs(transaction, list(job_ids)))


def note_alone(transaction: Transaction, item: ClaimedItem) -> None:
    """Note that this item is the only one its worker runs, for as long as this lease holds."""
    queries.note_alone(transaction, item.item_id, item.lease)


def say(transaction: Transaction, job_id: UUID, message: str) -> None:
    """Tell the people who watch a running job what it is doing."""
    queries.set_message(transaction, job_id, storable_text(message)[:2000])
