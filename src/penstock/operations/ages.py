"""How old the oldest waiting and the oldest running item of each kind is: what an alarm should look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.lifecycle.states import ItemStatus
from penstock.store.queries import ages as queries
from penstock.store.transaction import Transaction

MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Ages:
    """Seconds, by kind; a kind without such an item is left out."""

    waiting: dict[str, float]
    running: dict[str, float]
    expired_leases: int
    """Leases that ran out and that no sweep has taken back yet; counted up to a bound."""


def ages(transaction: Transaction, kinds: Iterable[str]) -> Ages:
    """The oldest items of these kinds: one look into an index for each."""
    names = list(kinds)
    return Ages(
        waiting=_oldest(transaction, names, ItemStatus.PENDING),
        running=_oldest(transaction, names, ItemStatus.PROCESSING),
        expired_leases=queries.expired_leases(transaction, limit=MAX_COUNTED),
    )


def _oldest(transaction: Transaction, kinds: Iterable[str], status: ItemStatus) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for kind in kinds:
        item = queries.oldest_item(transaction, kind, status)
        if item is not None:
            seconds[kind] = max(0.0, (item.now - item.updated_at).total_seconds())
    return seconds
