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
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.decisions import AddFinalize, Fail, JobCounters, Next, Nothing, Retry, Succeed, next_step
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import encode
from penstock.lifecycle.states import ErrorType, ItemRole, ItemStatus, JobState, KilledBy
from penstock.lifecycle.transitions import FAIL, RETRY, SUCCEED
from penstock.operations.change import change
from penstock.operations.single_flight import fail_followers, succeed_followers
from penstock.store.statements import record as statements
from penstock.store.transaction import Transaction

_ITEM_ID, _LEASE, _JOB_ID = itemgetter(0), itemgetter(1), itemgetter(2)


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

    def counts(self, job_id: UUID) -> tuple[object, ...]:
        """The row that adds them to the job's counters."""
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
        counted = batch if len(ready) == len(batch) else [one for one in batch if one.item_id in ready]
        for job_id, its in groupby(counted, _JOB_ID):
            tally = tallies[job_id]
            for item_id, _, _, role, outcome in its:
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
    dialect = transaction.dialect
    jobs = {"the_jobs": list({one.job_id for one in ended})}
    free_jobs = frozenset(transaction.run(statements.free_jobs(dialect), jobs).scalars())
    items = {"the_items": [one.item_id for one in ended if one.job_id in free_jobs]}
    free_items = transaction.run(statements.known_items(dialect, free=True), items).scalars()
    # Of an item that is not there any more the record has to be told, too.
    known_items = transaction.run(statements.known_items(dialect, free=False), items).scalars()
    locked_items = frozenset(known_items).difference(free_items)
    free: list[ItemResult] = []
    locked: list[ItemResult] = []
    for one in ended:
        (free if one.job_id in free_jobs and one.item_id not in locked_items else locked).append(one)
    return record(transaction, free, caller), locked


def _each_item_once(ended: Sequence[ItemResult]) -> Iterator[Sequence[ItemResult]]:
    """Outcomes in batches that name no item twice: a worker may hand in a try it lost together with the one it has."""
    if len({one.item_id for one in ended}) == len(ended):
        yield ended
        return
    left = ended
    while left:
        batch = {one.item_id: one for one in reversed(left)}
        taken = {id(one) for one in batch.values()}
        left = [one for one in left if id(one) not in taken]
        yield list(batch.values())[::-1]


def _end_items(transaction: Transaction, ended: Sequence[ItemResult], *, all_ours: bool) -> dict[int, datetime | None]:
    """Write the outcomes whose lease still holds; for those that go back, when they are ready."""
    dialect = transaction.dialect
    done: defaultdict[UUID, list[tuple[int, str | None]]] = defaultdict(list)
    others = []
    # In the order of their ids, as a heartbeat takes them: neither waits for what the other has.
    for lease, its in groupby(sorted(ended, key=_ITEM_ID), _LEASE):
        finished = done[lease]
        for one in its:
            item_id, _, _, _, outcome = one
            if outcome.status is ItemStatus.DONE:
                finished.append((item_id, outcome.result))
            else:
                others.append(_ending(one))
    landed: dict[int, datetime | None] = {}
    for lease, rows in done.items():
        if not rows:
            continue
        parameters = dialect.parameters("done", statements.DONE, rows)
        parameters["the_lease"] = lease
        landed |= dict.fromkeys(_finish(transaction, rows, parameters, all_ours=all_ours))
    if others:
        parameters = dialect.parameters("endings", statements.ENDINGS, others)
        landed.update(tuple(row) for row in transaction.run(statements.end_items(dialect), parameters))
    return landed


def _finish(
    transaction: Transaction, rows: Sequence[tuple[int, str | None]], parameters: dict[str, Any], *, all_ours: bool
) -> Iterable[int]:
    """DONE for the items of one lease; the answer is the ids of those that landed."""
    if not all_ours:
        return transaction.run(statements.finish_items(transaction.dialect, named=True), parameters).scalars()
    finished = transaction.run(statements.finish_items(transaction.dialect, named=False), parameters)
    if finished.rowcount != len(rows):
        raise LeaseLost
    return map(_ITEM_ID, rows)


def _ending(one: ItemResult) -> tuple[object, ...]:
    outcome = one.outcome
    return (
        one.item_id, one.lease, outcome.status.value, outcome.error, outcome.code, _value(outcome.error_type),
        _value(outcome.killed_by), outcome.traceback, outcome.delay, outcome.counts,
        int(outcome.died),
    )  # fmt: skip


def _value(word: StrEnum | None) -> str | None:
    return None if word is None else word.value


def _settle(transaction: Transaction, tallies: dict[UUID, _Tally], caller: Caller) -> None:
    """Count the outcomes and let each job become what follows."""
    rows = transaction.run(statements.lock_jobs(transaction.dialect), {"the_jobs": list(tallies)}).all()
    decided: defaultdict[type[Next], list[tuple[Any, Any]]] = defaultdict(list)
    planned, kinds = [], {}
    for row in rows:
        tally = tallies[row.id]
        kinds[row.id] = row.kind
        plan_done = tally.plan is not None and tally.plan.status is ItemStatus.DONE
        if plan_done:
            planned.append(row.id)
        if row.state != JobState.RUNNING:
            # Paused, or over already: count what is true, change no state. Resuming settles the rest.
            decided[Nothing].append((row, Nothing()))
            continue
        ledger = JobCounters(
            single_step=row.single_step,
            planned=row.planned or plan_done,
            has_finalizer=row.has_finalizer,
            finalize_added=row.last_claimable > row.total_items,
            total=row.total_items,
            processed=row.processed_items + tally.processed,
        )
        following = next_step(ledger, plan=tally.plan, single=tally.item, finalize=tally.finalize)
        decided[type(following)].append((row, following))
    if planned:
        transaction.run(statements.open_planned(transaction.dialect), {"the_jobs": planned})
    _count(transaction, tallies, decided[Nothing] + decided[AddFinalize])
    if decided[AddFinalize]:
        add_finalize(transaction, [row.id for row, _ in decided[AddFinalize]])
    _retry(transaction, tallies, decided[Retry], caller)
    _succeed(transaction, tallies, decided[Succeed], caller)
    _fail(transaction, tallies, decided[Fail], caller)
    _wake(transaction, [row.kind for row, _ in decided[AddFinalize]] + [kinds[one] for one in planned])
    _wake(transaction, [row.kind for row, _ in decided[Nothing] if tallies[row.id].returned])


def _wake(transaction: Transaction, kinds: Iterable[str]) -> None:
    transaction.wake(*dict.fromkeys(kinds))


def _count(transaction: Transaction, tallies: dict[UUID, _Tally], jobs: list[tuple[Any, Any]]) -> None:
    if jobs:
        rows = [(*tallies[row.id].counts(row.id), tallies[row.id].ready_at) for row, _ in jobs]
        parameters = transaction.dialect.parameters("counts", statements.TURNS, rows)
        transaction.run(statements.count_outcomes(transaction.dialect), parameters)


def add_finalize(transaction: Transaction, job_ids: Sequence[UUID]) -> None:
    """Add the one item that finalizes each of these jobs."""
    transaction.run(statements.add_finalize_items(transaction.dialect), {"the_jobs": job_ids})
    transaction.run(statements.open_finalize(transaction.dialect), {"the_jobs": job_ids})


def _retry(
    transaction: Transaction, tallies: dict[UUID, _Tally], jobs: list[tuple[Any, Retry]], caller: Caller
) -> None:
    if not jobs:
        return
    rows = [
        (
            *tallies[row.id].counts(row.id),
            following.outcome.error,
            following.outcome.code,
            _value(following.outcome.error_type),
            tallies[row.id].ready_at,
        )
        for row, following in jobs
    ]
    reasons = {row.id: following.outcome.error for row, following in jobs}
    parameters = transaction.dialect.parameters("retried", statements.RETRIES, rows)
    change(transaction, RETRY, statements.retry_jobs(transaction.dialect), parameters, caller, reasons=reasons)


def _succeed(
    transaction: Transaction, tallies: dict[UUID, _Tally], jobs: list[tuple[Any, Succeed]], caller: Caller
) -> None:
    if not jobs:
        return
    rows = [(*tallies[row.id].counts(row.id), following.result) for row, following in jobs]
    parameters = transaction.dialect.parameters("results", statements.RESULTS, rows)
    changed = change(transaction, SUCCEED, statements.succeed_jobs(transaction.dialect), parameters, caller)
    succeed_followers(transaction, changed, caller)


def _fail(transaction: Transaction, tallies: dict[UUID, _Tally], jobs: list[tuple[Any, Fail]], caller: Caller) -> None:
    if not jobs:
        return
    rows = [
        (
            *tallies[row.id].counts(row.id),
            following.outcome.error,
            following.outcome.code,
            _value(following.outcome.error_type or ErrorType.TERMINAL),
            following.phase.value,
            _value(following.outcome.killed_by),
        )
        for row, following in jobs
    ]
    reasons = {row.id: following.outcome.error for row, following in jobs}
    parameters = transaction.dialect.parameters("failures", statements.FAILURES, rows)
    changed = change(transaction, FAIL, statements.fail_jobs(transaction.dialect), parameters, caller, reasons=reasons)
    fail_followers(transaction, changed, caller)


def settle_from_rows(transaction: Transaction, job_id: UUID, caller: Caller) -> None:
    """Let a running job become what its items' rows say: for outcomes that came in while it was paused."""
    dialect = transaction.dialect
    row = transaction.run(statements.lock_jobs(dialect), {"the_jobs": [job_id]}).one()
    written = _Tally()
    positions = [0] if not row.planned else []
    positions += [1] if row.single_step else []
    positions += [row.last_claimable] if row.last_claimable > row.total_items else []
    for position in positions:
        item = transaction.run(
            statements.deciding_item(dialect), {"the_job_id": job_id, "the_position": position}
        ).one_or_none()  # fmt: skip
        if item is not None and item.status not in (ItemStatus.PENDING, ItemStatus.PROCESSING):
            written.add(ItemRole(item.role), _outcome_of(item), None)
    ledger = JobCounters(
        single_step=row.single_step,
        planned=row.planned,
        has_finalizer=row.has_finalizer,
        finalize_added=row.last_claimable > row.total_items,
        total=row.total_items,
        processed=row.processed_items,
    )
    following = next_step(ledger, plan=written.plan, single=written.item, finalize=written.finalize)
    nothing_new = {job_id: _Tally()}
    match following:
        case Succeed():
            _succeed(transaction, nothing_new, [(row, following)], caller)
        case Fail():
            _fail(transaction, nothing_new, [(row, following)], caller)
        case AddFinalize():
            add_finalize(transaction, [job_id])
            _wake(transaction, [row.kind])
        case _:
            pass


def _outcome_of(item: Any) -> Outcome:
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
