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
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeVar
from uuid import UUID

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.decisions import AddFinalize, Fail, JobCounters, Next, Nothing, Retry, Succeed, next_step
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import encode
from penstock.lifecycle.states import ErrorType, ItemRole, ItemStatus, JobState, KilledBy
from penstock.lifecycle.transitions import FAIL, RETRY, SUCCEED
from penstock.operations.change import change, followed
from penstock.operations.single_flight import fail_followers, succeed_followers
from penstock.store.queries import record as queries
from penstock.store.queries import settle
from penstock.store.queries.record import EndedItem, FinishedItem
from penstock.store.queries.settle import (
    CountedJob,
    DecidingItem,
    FailedJob,
    JobCounts,
    RetriedJob,
    SucceededJob,
)
from penstock.store.transaction import Transaction

_ITEM_ID, _LEASE, _JOB_ID = attrgetter("item_id"), attrgetter("lease"), attrgetter("job_id")
_Next = TypeVar("_Next", bound=Next)


class ItemResult(NamedTuple):
    """One try that ended: which item, under which lease, and how."""

    item_id: int
    lease: UUID
    job_id: UUID
    role: ItemRole
    outcome: Outcome


@dataclass(slots=True)
class _Tally:
    """What the outcomes of one job add up to."""

    processed: int = 0
    failed: int = 0
    not_found: int = 0
    skipped: int = 0
    returned: int = 0
    ready_at: datetime | None = None
    plan: Outcome | None = None
    item: Outcome | None = None
    """The last one's; of a single-step job there is only one."""
    finalize: Outcome | None = None

    def add(self, role: ItemRole, outcome: Outcome, ready_at: datetime | None) -> None:
        """Count one outcome; plan and finalize items decide, but are not counted as items."""
        status = outcome.status
        if role is ItemRole.ITEM:
            self.item = outcome
            self.processed += status is not ItemStatus.PENDING
            self.failed += status is ItemStatus.ERROR
            self.not_found += status is ItemStatus.NOT_FOUND
            self.skipped += status is ItemStatus.SKIPPED
        elif role is ItemRole.PLAN:
            self.plan = outcome
        else:
            self.finalize = outcome
        if status is ItemStatus.PENDING:
            self.returned += 1
            if ready_at is not None and (self.ready_at is None or ready_at < self.ready_at):
                self.ready_at = ready_at

    def counts(self, job_id: UUID) -> tuple[UUID, int, int, int, int, int]:
        """What every row about the job begins with."""
        return (job_id, self.processed, self.failed, self.not_found, self.skipped, self.returned)


class LeaseLost(Exception):
    """Not every item was still ours: nothing may be kept, and the caller asks again which of them are."""


def record(
    transaction: Transaction, ended: Sequence[ItemResult], caller: Caller, *, all_ours: bool = False
) -> set[int]:
    """Write outcomes back; the answer is the ids of the items whose outcome landed.

    With ``all_ours`` the caller thinks that all will: then the database need not name them, which for a large slice
    takes as long as a tenth of writing them. Where that was wrong, :class:`LeaseLost` undoes the transaction.
    """
    landed: set[int] = set()
    tallies: defaultdict[UUID, _Tally] = defaultdict(_Tally)
    for batch in _each_item_once(ended):
        ready = _end_items(transaction, batch, all_ours=all_ours)
        counted = batch if len(ready) == len(batch) else [result for result in batch if result.item_id in ready]
        for job_id, results in groupby(counted, _JOB_ID):
            tally = tallies[job_id]
            for item_id, _, _, role, outcome in results:
                if role is ItemRole.ITEM and outcome.status is ItemStatus.DONE:
                    tally.processed += 1
                    tally.item = outcome
                else:
                    tally.add(role, outcome, ready[item_id])
        landed |= ready.keys()
    if tallies:
        _settle(transaction, tallies, caller)
    return landed


def record_free(
    transaction: Transaction, ended: Sequence[ItemResult], caller: Caller
) -> tuple[set[int], Sequence[ItemResult]]:
    """Write back the outcomes whose rows nobody has locked; the answer is the ids of those that landed, and the rest.

    It waits for nobody. Jobs are locked before their items here, and so for longer than in :func:`record`: this is for
    when that has met somebody's open transaction.
    """
    free_jobs = frozenset(queries.free_jobs(transaction, list({result.job_id for result in ended})))
    item_ids = [result.item_id for result in ended if result.job_id in free_jobs]
    free_items = queries.free_items(transaction, item_ids)
    # Of an item that is not there any more the record has to be told, too.
    locked_items = frozenset(queries.known_items(transaction, item_ids)).difference(free_items)
    free: list[ItemResult] = []
    locked: list[ItemResult] = []
    for result in ended:
        (free if result.job_id in free_jobs and result.item_id not in locked_items else locked).append(result)
    return record(transaction, free, caller), locked


def _each_item_once(ended: Sequence[ItemResult]) -> Iterator[Sequence[ItemResult]]:
    """Outcomes in batches that name no item twice: a worker may hand in a try it lost together with the one it has."""
    if len({result.item_id for result in ended}) == len(ended):
        yield ended
        return
    left = ended
    while left:
        batch = {result.item_id: result for result in reversed(left)}
        in_batch = {id(result) for result in batch.values()}
        left = [result for result in left if id(result) not in in_batch]
        yield list(batch.values())[::-1]


def _end_items(transaction: Transaction, ended: Sequence[ItemResult], *, all_ours: bool) -> dict[int, datetime | None]:
    """Write the outcomes whose lease still holds; for those that go back, when they are ready."""
    finished: defaultdict[UUID, list[FinishedItem]] = defaultdict(list)
    others: list[EndedItem] = []
    # In the order of their ids, as a heartbeat takes them: neither waits for what the other has.
    for lease, results in groupby(sorted(ended, key=_ITEM_ID), _LEASE):
        finished_now = finished[lease]
        for result in results:
            item_id, _, _, _, outcome = result
            if outcome.status is ItemStatus.DONE:
                finished_now.append((item_id, outcome.result))
            else:
                others.append(_ended(result))
    landed: dict[int, datetime | None] = {}
    for lease, items in finished.items():
        if items:
            landed |= dict.fromkeys(_finish(transaction, lease, items, all_ours=all_ours))
    if others:
        landed.update(queries.end_items(transaction, others))
    return landed


def _finish(transaction: Transaction, lease: UUID, items: Sequence[FinishedItem], *, all_ours: bool) -> Iterable[int]:
    """DONE for the items of one lease; the answer is the ids of those that landed."""
    if not all_ours:
        return queries.finish_held_items(transaction, lease, items)
    if queries.finish_items(transaction, lease, items) != len(items):
        raise LeaseLost
    return [item_id for item_id, _ in items]


def _ended(result: ItemResult) -> EndedItem:
    outcome = result.outcome
    return EndedItem(
        id=result.item_id,
        lease=result.lease,
        status=outcome.status.value,
        error=outcome.error,
        code=outcome.code,
        error_type=_value(outcome.error_type),
        killed_by=_value(outcome.killed_by),
        traceback=outcome.traceback,
        delay=outcome.delay,
        counts=outcome.counts,
        deaths=int(outcome.died),
    )


def _value(word: StrEnum | None) -> str | None:
    return None if word is None else word.value


_Decided = list[tuple[CountedJob, _Next]]
"""Jobs, and what follows for each."""


def _settle(transaction: Transaction, tallies: dict[UUID, _Tally], caller: Caller) -> None:
    """Count the outcomes and let each job become what follows."""
    succeeding: _Decided[Succeed] = []
    failing: _Decided[Fail] = []
    retried: _Decided[Retry] = []
    finalizing: list[CountedJob] = []
    going_on: list[CountedJob] = []
    planned: list[CountedJob] = []
    for job in settle.lock_jobs(transaction, list(tallies)):
        tally = tallies[job.id]
        plan_done = tally.plan is not None and tally.plan.status is ItemStatus.DONE
        if plan_done:
            planned.append(job)
        if job.state != JobState.RUNNING:
            # Paused, or over already: count what is true, change no state. Resuming settles the rest.
            going_on.append(job)
            continue
        counters = JobCounters(
            single_step=job.single_step,
            planned=job.planned or plan_done,
            has_finalizer=job.has_finalizer,
            finalize_added=job.last_claimable > job.total_items,
            total=job.total_items,
            processed=job.processed_items + tally.processed,
        )
        following = next_step(counters, plan=tally.plan, single=tally.item, finalize=tally.finalize)
        match following:
            case Succeed():
                succeeding.append((job, following))
            case Fail():
                failing.append((job, following))
            case Retry():
                retried.append((job, following))
            case AddFinalize():
                finalizing.append(job)
            case Nothing():
                going_on.append(job)
    if planned:
        settle.open_planned(transaction, [job.id for job in planned])
    _count(transaction, tallies, going_on + finalizing)
    if finalizing:
        add_finalize(transaction, [job.id for job in finalizing])
    _retry(transaction, tallies, retried, caller)
    _succeed(transaction, tallies, succeeding, caller)
    _fail(transaction, tallies, failing, caller)
    _wake(transaction, finalizing + planned)
    _wake(transaction, [job for job in going_on if tallies[job.id].returned])


def _wake(transaction: Transaction, jobs: Iterable[CountedJob]) -> None:
    transaction.wake(*dict.fromkeys(job.kind for job in jobs))


def _count(transaction: Transaction, tallies: dict[UUID, _Tally], jobs: Sequence[CountedJob]) -> None:
    if jobs:
        counts = [JobCounts(*tallies[job.id].counts(job.id), tallies[job.id].ready_at) for job in jobs]
        settle.count_outcomes(transaction, counts)


def add_finalize(transaction: Transaction, job_ids: Sequence[UUID]) -> None:
    """Add the one item that finalizes each of these jobs."""
    settle.add_finalize_items(transaction, job_ids)
    settle.open_finalize(transaction, job_ids)


def _retry(transaction: Transaction, tallies: dict[UUID, _Tally], jobs: _Decided[Retry], caller: Caller) -> None:
    if not jobs:
        return
    retried = [
        RetriedJob(
            *tallies[job.id].counts(job.id),
            following.outcome.error,
            following.outcome.code,
            _value(following.outcome.error_type),
            tallies[job.id].ready_at,
        )
        for job, following in jobs
    ]
    reasons = {job.id: following.outcome.error for job, following in jobs}
    change(transaction, RETRY, partial(settle.retry_jobs, retried=retried), caller, reasons=reasons)


def _succeed(transaction: Transaction, tallies: dict[UUID, _Tally], jobs: _Decided[Succeed], caller: Caller) -> None:
    if not jobs:
        return
    succeeded = [SucceededJob(*tallies[job.id].counts(job.id), following.result) for job, following in jobs]
    changed = change(transaction, SUCCEED, partial(settle.succeed_jobs, succeeded=succeeded), caller)
    succeed_followers(transaction, followed(changed), caller)


def _fail(transaction: Transaction, tallies: dict[UUID, _Tally], jobs: _Decided[Fail], caller: Caller) -> None:
    if not jobs:
        return
    failed = [
        FailedJob(
            *tallies[job.id].counts(job.id),
            following.outcome.error,
            following.outcome.code,
            _value(following.outcome.error_type or ErrorType.TERMINAL),
            following.phase.value,
            _value(following.outcome.killed_by),
        )
        for job, following in jobs
    ]
    reasons = {job.id: following.outcome.error for job, following in jobs}
    changed = change(transaction, FAIL, partial(settle.fail_jobs, failed=failed), caller, reasons=reasons)
    fail_followers(transaction, followed(changed), caller)


def settle_from_rows(transaction: Transaction, job_id: UUID, caller: Caller) -> None:
    """Let a running job become what its items' rows say: for outcomes that came in while it was paused."""
    [job] = settle.lock_jobs(transaction, [job_id])
    written = _Tally()
    positions = [0] if not job.planned else []
    positions += [1] if job.single_step else []
    positions += [job.last_claimable] if job.last_claimable > job.total_items else []
    for position in positions:
        item = settle.deciding_item(transaction, job_id, position)
        if item is not None and item.status not in (ItemStatus.PENDING, ItemStatus.PROCESSING):
            written.add(ItemRole(item.role), _outcome_of(item), None)
    counters = JobCounters(
        single_step=job.single_step,
        planned=job.planned,
        has_finalizer=job.has_finalizer,
        finalize_added=job.last_claimable > job.total_items,
        total=job.total_items,
        processed=job.processed_items,
    )
    nothing_new = {job_id: _Tally()}
    following = next_step(counters, plan=written.plan, single=written.item, finalize=written.finalize)
    match following:
        case Succeed():
            _succeed(transaction, nothing_new, [(job, following)], caller)
        case Fail():
            _fail(transaction, nothing_new, [(job, following)], caller)
        case AddFinalize():
            add_finalize(transaction, [job_id])
            _wake(transaction, [job])
        case _:
            pass


def _outcome_of(item: DecidingItem) -> Outcome:
    """The outcome an item's row tells of."""
    result = None if item.result_json is None else encode(item.result_json, most=2**62, at="result")
    return Outcome(
        ItemStatus(item.status),
        result=result,
        error=item.last_error,
        code=item.error_code,
        error_type=None if item.error_type is None else ErrorType(item.error_type),
        killed_by=None if item.killed_by is None else KilledBy(item.killed_by),
    )
