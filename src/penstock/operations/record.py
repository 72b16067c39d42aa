"""Recording how tries ended: items behind their fence, then what each job counts and becomes.

Outcomes of a slice go back in one transaction. An item whose lease is not ours any more (it ran out and another worker
has it, or the job's new run took it back) changes nothing, and the caller is told. Then the jobs are locked in the
order of their ids, counted, and what follows is decided by :func:`penstock.lifecycle.decisions.next_step` while the
lock is held: so of two workers that bring in the last two items at the same instant, exactly one finds the count
complete, and it adds the finalize item in that same transaction. Dying anywhere before the commit leaves the items
leased, and the sweep brings them back.

Items are locked before their jobs: a job's row, which claims and other recorders need too, is held for as short as can
be. Whoever has to wait for a job holds its items meanwhile; so that wait is bounded (``Store.write(bounded=True)``).
When it was in vain, :func:`record_free` writes what is free without waiting for anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.states import ItemRole, ItemStatus
from penstock.operations.settle import Tally, settle_jobs, value_of
from penstock.store.queries import record as queries
from penstock.store.queries.record import EndedItem, FinishedItem
from penstock.store.transaction import Transaction

_ITEM_ID, _LEASE, _JOB_ID = attrgetter("item_id"), attrgetter("lease"), attrgetter("job_id")


class ItemResult(NamedTuple):
    """One try that ended: which item, under which lease, and how."""

    item_id: int
    lease: UUID
    job_id: UUID
    role: ItemRole
    outcome: Outcome


class LeaseLost(Exception):
    """Some leases were lost: the transaction is undone, and the caller asks which of the items still are ours."""


def record(
    transaction: Transaction, item_results: Sequence[ItemResult], caller: Caller, *, all_ours: bool = False
) -> set[int]:
    """Write outcomes back; the answer is the ids of the items whose outcome landed.

    With ``all_ours`` the caller thinks that all will: then the database need not name them, which for a large slice
    takes as long as a tenth of writing them. Where that was wrong, :class:`LeaseLost` undoes the transaction.
    """
    landed_ids: set[int] = set()
    tallies: defaultdict[UUID, Tally] = defaultdict(Tally)
    for batch in _each_item_once(item_results):
        ready = _end_items(transaction, batch, all_ours=all_ours)
        landed_results = batch if len(ready) == len(batch) else [result for result in batch if result.item_id in ready]
        for job_id, results in groupby(landed_results, _JOB_ID):
            tally = tallies[job_id]
            for item_id, _, _, role, outcome in results:
                if role is ItemRole.ITEM and outcome.status is ItemStatus.DONE:
                    tally.processed += 1
                    tally.item = outcome
                else:
                    tally.add(role, outcome, ready[item_id])
        landed_ids |= ready.keys()
    if tallies:
        settle_jobs(transaction, tallies, caller)
    return landed_ids


def record_free(
    transaction: Transaction, item_results: Sequence[ItemResult], caller: Caller
) -> tuple[set[int], Sequence[ItemResult]]:
    """Write back the outcomes whose rows nobody has locked; the answer is the ids of those that landed, and the rest.

    It waits for nobody. Jobs are locked before their items here, and so for longer than in :func:`record`: this is for
    when that has met somebody's open transaction.
    """
    free_jobs = frozenset(queries.free_jobs(transaction, list({result.job_id for result in item_results})))
    item_ids = [result.item_id for result in item_results if result.job_id in free_jobs]
    free_items = queries.free_items(transaction, item_ids)
    # Of an item that is not there any more the record has to be told, too.
    locked_items = frozenset(queries.known_items(transaction, item_ids)).difference(free_items)
    free: list[ItemResult] = []
    locked_results: list[ItemResult] = []
    for result in item_results:
        (free if result.job_id in free_jobs and result.item_id not in locked_items else locked_results).append(result)
    return record(transaction, free, caller), locked_results


def _each_item_once(item_results: Sequence[ItemResult]) -> Iterator[Sequence[ItemResult]]:
    """Outcomes in batches that name no item twice: a worker may hand in a try it lost together with the one it has."""
    if len({result.item_id for result in item_results}) == len(item_results):
        yield item_results
        return
    remaining = item_results
    while remaining:
        batch = {result.item_id: result for result in reversed(remaining)}
        in_batch = {id(result) for result in batch.values()}
        remaining = [result for result in remaining if id(result) not in in_batch]
        yield list(batch.values())[::-1]


def _end_items(
    transaction: Transaction, item_results: Sequence[ItemResult], *, all_ours: bool
) -> dict[int, datetime | None]:
    """Write the outcomes whose lease still holds; for those that go back, when they are ready."""
    finished_items: defaultdict[UUID, list[FinishedItem]] = defaultdict(list)
    others: list[EndedItem] = []
    # In the order of their ids, as a heartbeat takes them: neither waits for what the other has.
    for lease, results in groupby(sorted(item_results, key=_ITEM_ID), _LEASE):
        finished_now = finished_items[lease]
        for result in results:
            item_id, _, _, _, outcome = result
            if outcome.status is ItemStatus.DONE:
                finished_now.append((item_id, outcome.result))
            else:
                others.append(_ended_item(result))
    ready_times: dict[int, datetime | None] = {}
    for lease, items in finished_items.items():
        if items:
            ready_times |= dict.fromkeys(_finish(transaction, lease, items, all_ours=all_ours))
    if others:
        ready_times.update(queries.end_items(transaction, others))
    return ready_times


def _finish(transaction: Transaction, lease: UUID, items: Sequence[FinishedItem], *, all_ours: bool) -> Iterable[int]:
    """DONE for the items of one lease; the answer is the ids of those that landed."""
    if not all_ours:
        return queries.finish_held_items(transaction, lease, items)
    if queries.finish_items(transaction, lease, items) != len(items):
        raise LeaseLost
    return [item_id for item_id, _ in items]


def _ended_item(result: ItemResult) -> EndedItem:
    outcome = result.outcome
    return EndedItem(
        id=result.item_id,
        lease=result.lease,
        status=outcome.status.value,
        error=outcome.error,
        code=outcome.code,
        error_type=value_of(outcome.error_type),
        error_class=outcome.error_class,
        killed_by=value_of(outcome.killed_by),
        traceback=outcome.traceback,
        delay=outcome.delay,
        counts=outcome.counts,
        not_found=int(outcome.was_not_found),
        deaths=int(outcome.worker_died),
    )
