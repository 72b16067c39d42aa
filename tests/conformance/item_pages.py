"""Jobs with many items, changes to them, and walks through their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

from penstock.lifecycle import outcomes
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.states import ItemStatus
from penstock.operations.claim import claim
from penstock.operations.read_items import ItemCursor, ItemRow
from penstock.testing.drive import Workbench

PENDING, PROCESSING, DONE = ItemStatus.PENDING, ItemStatus.PROCESSING, ItemStatus.DONE
OPEN = (PENDING, PROCESSING)
WELL = outcomes.done('{"ok":true}')
FAILED = outcomes.failed("no such thing", "NO")
LATER = outcomes.retried("later", "LATER", 5.0)
LONG = 60.0
"""Seconds after which a change is surely before a walk that begins then."""


def bulk(bench: Workbench, count: int, *, kind: str = "bulk", **request: Any) -> UUID:
    """A job with so many items."""
    return bench.submit(kind, items=[{"title": f"row {n}"} for n in range(1, count + 1)], **request).job.id


def take(bench: Workbench, job_id: UUID, size: int, kind: str = "bulk") -> list[ClaimedItem]:
    """Claim items of this job, a second later."""
    bench.clock.advance(1)
    return list(claim(bench.store, kind, "w1", size=size, lease_seconds=1e6, job_id=job_id).items)


def end(bench: Workbench, held: Sequence[ClaimedItem], outcome: outcomes.Outcome) -> None:
    """Hand in an outcome for all of these, a second later."""
    bench.clock.advance(1)
    bench.record(held, outcome)


def pages(
    ask: Callable[[ItemCursor | None], list[ItemRow]], meanwhile: Callable[[], None] = lambda: None
) -> Iterator[list[ItemRow]]:
    """Page after page until one is empty; something may happen between two of them."""
    after: ItemCursor | None = None
    while page := ask(after):
        yield page
        after = page[-1].place
        meanwhile()
