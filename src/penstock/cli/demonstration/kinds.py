"""The demo's own kinds: one with many items that go their ways, and one slow enough to be stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock import Permanent, Retryable

if TYPE_CHECKING:
    from penstock import ItemContext, JobContext, Penstock

COUNT_WORDS = "count-words"
SLOW_COUNT = "slow-count"
LINES = 2_000
UNREADABLE_EVERY = 400
BUSY_EVERY = 150
SLOW_ITEMS = 60

_WORDS = ("water", "gate", "wheel", "mill", "head", "sluice", "stream", "turbine", "weir")


class CountWords:
    """Counts the words of generated lines, as if each had to be fetched from somewhere."""

    def plan(self, job: JobContext) -> Iterator[Any]:
        """Yield the lines; each becomes an item in the database."""
        for number in range(1, job.params["lines"] + 1):
            yield " ".join(_WORDS[(number * step) % len(_WORDS)] for step in range(1, number % 7 + 2))

    async def process(self, item: ItemContext) -> int:
        """Count one line. Some are busy at the first try, and a few cannot be read at all."""
        await asyncio.sleep(0.025)
        if item.position % UNREADABLE_EVERY == 0:
            raise Permanent(f"line {item.position} is smudged", code="LINE_UNREADABLE")
        if item.position % BUSY_EVERY == 0 and item.attempt == 1:
            raise Retryable("somebody else is reading this line", code="LINE_BUSY")
        return len(str(item.input).split())

    def finalize(self, job: JobContext) -> dict[str, int]:
        """Add them up, once, after the last line."""
        return {"words": sum(job.results()), "lines": job.progress.done, "unreadable": job.progress.failed}


def count_slowly(item: ItemContext) -> int:
    """Take a while, and stop when told to."""
    for _ in range(15):
        item.check()
        time.sleep(0.01)
    return item.position


def register(app: Penstock) -> None:
    """Make both kinds known."""
    app.kind(COUNT_WORDS, retries=2, backoff="200ms fixed", reprocess=True)(CountWords)
    app.kind(SLOW_COUNT, retries=0, concurrency=2)(count_slowly)
