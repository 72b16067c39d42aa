"""What jobs become once the outcomes of their items are written: counted, decided and changed under their locks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TypeVar
from uuid import UUID

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.decisions import AddFinalize, Fail, JobCounters, Next, Nothing, Retry, Succeed, next_step
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import encode
from penstock.lifecycle.states import ErrorType, ItemRole, ItemStatus, JobState, KilledBy
from penstock.lifecycle.transitions import FAIL, RETRY, SUCCEED
from penstock.operations.single_flight import fail_followers, succeed_followers
from penstock.store.job_changes import change, jobs_with_followers
from penstock.store.queries import settle as queries
from penstock.store.queries.settle import (
    CountedJob,
    DecidingItem,
    FailedJob,
    JobCounts,
    RetriedJob,
    SucceededJob,
)
from penstock.store.transaction import Transaction

_PLAN_POSITION, _SINGLE_POSITION = 0, 1
"""Where the item is that plans a job, and the only one of a single-step job."""


@dataclass(slots=True)
class Tally:
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


def value_of(word: StrEnum | None) -> str | None:
    """A word as it is kept."""
    return None if word is None else word.value


_Next = TypeVar("_Next", bound=Next)
_Decisions = list[tuple[CountedJob, _Next]]
"""Jobs, and what follows for each."""


def settle_jobs(transaction: Transaction, tallies: dict[UUID, Tally], caller: Caller) -> None:
    """Count the outcomes and let each job become what follows."""
    succeeded: list[SucceededJob] = []
    failing: _Decisions[Fail] = []
    retried: _Decisions[Retry] = []
    finalizing: list[CountedJob] = []
    going_on: list[CountedJob] = []
    planned_jobs: list[CountedJob] = []
    for job in queries.lock_jobs(transaction, list(tallies)):
        tally = tallies[job.id]
        plan_done = tally.plan is not None and tally.plan.status is ItemStatus.DONE
        if plan_done:
            planned_jobs.append(job)
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
        plan = tally.plan
        if plan is None and not job.planned:
            # It may have failed while the job was paused, or waited with other items to hand out.
            plan = _stored_outcome(transaction, job.id, _PLAN_POSITION)
        following = next_step(counters, plan=plan, single=tally.item, finalize=tally.finalize)
        match following:
            case Succeed():
                succeeded.append(SucceededJob(*tally.counts(job.id), following.result))
            case Fail():
                failing.append((job, following))
            case Retry():
                retried.append((job, following))
            case AddFinalize():
                finalizing.append(job)
            case Nothing():
                going_on.append(job)
    if planned_jobs:
        queries.open_planned(transaction, [job.id for job in planned_jobs])
    _count(transaction, tallies, going_on + finalizing)
    if finalizing:
        _add_finalize(transaction, [job.id for job in finalizing])
    _retry(transaction, tallies, retried, caller)
    if succeeded:
        changed_jobs = change(transaction, SUCCEED, partial(queries.succeed_jobs, succeeded=succeeded), caller)
        succeed_followers(transaction, jobs_with_followers(changed_jobs), caller)
    _fail(transaction, tallies, failing, caller)
    _wake(transaction, finalizing + planned_jobs)
    _wake(transaction, [job for job in going_on if tallies[job.id].returned])


def _wake(transaction: Transaction, jobs: Iterable[CountedJob]) -> None:
    transaction.wake(*dict.fromkeys(job.kind for job in jobs))


def _count(transaction: Transaction, tallies: dict[UUID, Tally], jobs: Sequence[CountedJob]) -> None:
    if jobs:
        counts = [JobCounts(*tallies[job.id].counts(job.id), tallies[job.id].ready_at) for job in jobs]
        queries.count_outcomes(transaction, counts)


def _add_finalize(transaction: Transaction, job_ids: Sequence[UUID]) -> None:
    """Add the one item that finalizes each of these jobs."""
    queries.add_finalize_items(transaction, job_ids)
    queries.open_finalize(transaction, job_ids)


def _retry(transaction: Transaction, tallies: dict[UUID, Tally], jobs: _Decisions[Retry], caller: Caller) -> None:
    if not jobs:
        return
    retried = [
        RetriedJob(
            *tallies[job.id].counts(job.id),
            following.outcome.error,
            following.outcome.code,
            value_of(following.outcome.error_type),
            following.outcome.error_class,
            tallies[job.id].ready_at,
        )
        for job, following in jobs
    ]
    reasons = {job.id: following.outcome.error for job, following in jobs}
    change(transaction, RETRY, partial(queries.retry_jobs, retried=retried), caller, reasons=reasons)


def _fail(transaction: Transaction, tallies: dict[UUID, Tally], jobs: _Decisions[Fail], caller: Caller) -> None:
    if not jobs:
        return
    failed = [
        FailedJob(
            *tallies[job.id].counts(job.id),
            following.outcome.error,
            following.outcome.code,
            value_of(following.outcome.error_type or ErrorType.TERMINAL),
            following.outcome.error_class,
            following.phase.value,
            value_of(following.outcome.killed_by),
        )
        for job, following in jobs
    ]
    reasons = {job.id: following.outcome.error for job, following in jobs}
    changed_jobs = change(transaction, FAIL, partial(queries.fail_jobs, failed=failed), caller, reasons=reasons)
    fail_followers(transaction, jobs_with_followers(changed_jobs), caller)


def settle_from_rows(transaction: Transaction, job_id: UUID, caller: Caller) -> None:
    """Let a running job become what its items' rows say: for outcomes that came in while it was paused."""
    [job] = queries.lock_jobs(transaction, [job_id])
    has_finalize = job.last_claimable > job.total_items
    plan = None if job.planned else _stored_outcome(transaction, job_id, _PLAN_POSITION)
    single = _stored_outcome(transaction, job_id, _SINGLE_POSITION) if job.single_step else None
    finalize = _stored_outcome(transaction, job_id, job.last_claimable) if has_finalize else None
    counters = JobCounters(
        single_step=job.single_step,
        planned=job.planned,
        has_finalizer=job.has_finalizer,
        finalize_added=has_finalize,
        total=job.total_items,
        processed=job.processed_items,
    )
    nothing_new = {job_id: Tally()}
    following = next_step(counters, plan=plan, single=single, finalize=finalize)
    match following:
        case Succeed():
            succeeded = [SucceededJob(*nothing_new[job_id].counts(job_id), following.result)]
            changed_jobs = change(transaction, SUCCEED, partial(queries.succeed_jobs, succeeded=succeeded), caller)
            succeed_followers(transaction, jobs_with_followers(changed_jobs), caller)
        case Fail():
            _fail(transaction, nothing_new, [(job, following)], caller)
        case AddFinalize():
            _add_finalize(transaction, [job_id])
            _wake(transaction, [job])
        case _:
            pass


def _stored_outcome(transaction: Transaction, job_id: UUID, position: int) -> Outcome | None:
    """How a deciding item has ended, by its row; None when it has not."""
    item = queries.deciding_item(transaction, job_id, position)
    return None if item is None or item.status in (ItemStatus.PENDING, ItemStatus.PROCESSING) else _outcome_of(item)


def _outcome_of(item: DecidingItem) -> Outcome:
    """The outcome an item's row tells of."""
    result = None if item.result_json is None else encode(item.result_json, max_bytes=2**62, at="result")
    return Outcome(
        ItemStatus(item.status),
        result=result,
        error=item.last_error,
        code=item.error_code,
        error_type=None if item.error_type is None else ErrorType(item.error_type),
        error_class=item.error_class,
        killed_by=None if item.killed_by is None else KilledBy(item.killed_by),
    )
