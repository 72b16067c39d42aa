"""Persisting what a plan yields, in batches of the size that the database handles well.

A batch is a transaction, or several where its rows are heavy.
What happens when a batch fails: nothing of it is there. A database that is away or busy is asked again with a smaller
batch after a pause, as often as the plan's lease allows. While somebody's open transaction has the job, the plan waits
until that has ended, or until it is stopped itself: in short tries, between which nothing is locked and the heartbeat
can renew its lease. Anything else ends this try of the plan, and the next one goes
on behind the last row persisted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from itertools import islice

import structlog

from penstock.errors import Stopped, StoreLocked, StoreUnavailable
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON
from penstock.operations.items import item_texts
from penstock.operations.plan import add_planned
from penstock.runners.contract import StopFlag
from penstock.store.engine import Store
from penstock.store.queries.job_items import NewItem
from penstock.worker.control.ingest_batch import IngestSample
from penstock.worker.controllers import Controllers

_TRIES = 5
_LOCKED_SECONDS = 0.25
"""Seconds between two tries while another transaction has locked the job."""
_ENCODED_AT_ONCE = 200
_WAIT_THAT_COUNTS_MS = 50.0
"""A shorter wait is ordinary: for the write lock, or for the interpreter, which the plan's own thread keeps busy."""
_log = structlog.get_logger("penstock.plan")


class PlanWriter:
    """Writes the planned items of one lane's jobs."""

    def __init__(
        self, store: Store, kind: Kind, controllers: Controllers, *, max_item_bytes: int, max_batch_bytes: int
    ) -> None:
        self._store = store
        self._kind = kind
        self._controllers = controllers
        self._max_item_bytes = max_item_bytes
        self._max_bytes = max_batch_bytes
        self._row_bytes = 0.0

    @property
    def rows(self) -> int:
        """How many rows the next batch should have."""
        return self._controllers.ingest.rows_for(self._row_bytes)

    def take(self, inputs: Iterator[JSON], after: int) -> list[NewItem]:
        """The next batch of what a plan yields behind the first ``after``, as it is kept; empty when there is no more.

        A few become text at a time: they are still at hand then, and gone before the garbage collector looks at them.
        """
        items: list[NewItem] = []
        rows = self.rows
        while some := list(islice(inputs, min(_ENCODED_AT_ONCE, rows - len(items)))):
            items += self.encode(some, after + len(items))
        return items

    def encode(self, batch: Sequence[JSON], after: int) -> list[NewItem]:
        """What a plan has yielded behind the first ``after``, as it is kept."""
        return item_texts(batch, self._max_item_bytes, after)

    def persist(self, plan_item: ClaimedItem, items: Sequence[NewItem], after: int, stop: StopFlag) -> int:
        """Write a batch behind position ``after``, in one transaction or several; the answer is the last position."""
        weights = [len(text) + len(normalized or "") for text, normalized in items]
        self._row_bytes = sum(weights) / len(items)
        first, position, failures = 0, after, 0
        while first < len(items):
            last = self._until(weights, first)
            began_at = time.perf_counter()
            try:
                position = self._write(plan_item, items[first:last], position)
            except StoreLocked:
                if stop.set:
                    raise Stopped(
                        f"job {plan_item.job_id} was stopped while another transaction had locked it"
                    ) from None
                time.sleep(_LOCKED_SECONDS)
                continue
            except StoreUnavailable as error:
                failures += 1
                self._controllers.ingest.observe(IngestSample(last - first, 0.0, failed=True))
                if failures >= _TRIES or stop.set:
                    raise
                pause = self._controllers.ingest.pause(random.Random())
                _log.warning("planned items could not be written", error=str(error), rows=last - first, wait=pause)
                time.sleep(pause)
                continue
            self._observe(last - first, time.perf_counter() - began_at)
            first, failures = last, 0
        return position

    def _until(self, weights: Sequence[int], first: int) -> int:
        """How far the next transaction goes: no more rows and no more bytes than are good for it, but one at least."""
        last, bytes_left = first + 1, self._max_bytes - weights[first]
        end = min(len(weights), first + max(1, self._controllers.ingest.setting))
        while last < end and weights[last] <= bytes_left:
            bytes_left -= weights[last]
            last += 1
        return last

    def _observe(self, rows: int, elapsed: float) -> None:
        wait = self._store.latency.own_wait_ms
        pool_wait_ms = wait if wait > _WAIT_THAT_COUNTS_MS else 0.0
        self._controllers.ingest.observe(IngestSample(rows, elapsed * 1000.0, pool_wait_ms=pool_wait_ms))
        self._controllers.note_persisted(rows)

    def _write(self, plan_item: ClaimedItem, items: Sequence[NewItem], after: int) -> int:
        return self._store.write(
            lambda transaction: add_planned(transaction, self._kind, plan_item, items, after=after), bounded=True
        )
