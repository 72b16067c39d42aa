"""How old the oldest waiting and the oldest running item of each kind is: what an alarm should look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.lifecycle.states import ItemStatus
from penstock.store.engine import Transaction
from penstock.store.statements import ages as statements

MOST_COUNTED = 10_000


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
    expired = transaction.run(statements.expired_leases(transaction.dialect), {"the_limit": MOST_COUNTED}).scalar()
    return Ages(
        waiting=_oldest(transaction, names, ItemStatus.PENDING),
        running=_oldest(transaction, names, ItemStatus.PROCESSING),
        expired_leases=int(expired),
    )


def _oldest(transaction: Transaction, kinds: Iterable[str], status: ItemStatus) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind in kinds:
        asked = {"the_kind": kind, "the_status": status.value}
        row = transaction.run(statements.oldest_item(transaction.dialect), asked).one_or_none()
        if row is not None:
            found[kind] = max(0.0, (row.now - row.updated_at).total_seconds())
    return found
