"""One maintenance pass: repairs that no other operation makes. Safe at any time, by many processes at once.

Each part finds a bounded number of rows, passes over those that another pass or somebody's open transaction has locked,
and changes the others by the same guarded statements as everybody else. What was passed over is found again by the next
pass. A part that meets a lock all the same, or takes longer than the server allows, does not keep the others from
theirs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from uuid import UUID

import structlog

from penstock.errors import StoreLocked, StoreUnavailable, TimeLimitExceeded
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.decisions import after_death
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import FLOWING, WELL_ENDED, ErrorType, ItemRole, JobState, KilledBy
from penstock.lifecycle.transitions import ABANDON, CANCEL, FAIL, REQUEUE, RESCUE
from penstock.operations.control import reschedule
from penstock.operations.inbox import forget_accepted
from penstock.operations.outbox import forget_sent
from penstock.operations.record import ItemResult, record
from penstock.operations.samples import forget_samples
from penstock.operations.single_flight import fail_followers, hand_over, succeed_followers
from penstock.operations.workers import forget_workers, note_death
from penstock.store.engine import Store
from penstock.store.job_changes import change, jobs_with_followers
from penstock.store.queries import maintenance as queries
from penstock.store.queries import rescue as rescue_queries
from penstock.store.queries.rescue import HeldItem
from penstock.store.transaction import Transaction

BATCH_SIZE = 1_000
_log = structlog.get_logger("penstock.sweep")


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What a pass repaired."""

    leases_expired: int = 0
    retries_due: int = 0
    never_submitted: int = 0
    waited_too_long: int = 0
    ran_too_long: int = 0
    abandoned: int = 0
    left_behind: int = 0
    stale: int = 0
    postponed: int = 0

    @property
    def total(self) -> int:
        """Everything together."""
        return sum(getattr(self, field.name) for field in fields(self))


@dataclass(slots=True)
class LastLook:
    """When a worker's sweep last looked at the leases, by the database's clock; a look counts for so long at least."""

    least_seconds: float
    at: datetime | None = None

    def move_on(self, now: datetime) -> datetime | None:
        """Look again; the answer is when the last look was, None while it is too young or the clock was set back."""
        last = self.at
        if last is None or now < last:
            self.at = now
            return None
        if (now - last).total_seconds() < self.least_seconds:
            return None
        self.at = now
        return last


def sweep(
    store: Store, kinds: Kinds, *, stale_seconds: float, suspect_deaths: int, last_look: LastLook | None = None
) -> MaintenanceReport:
    """Make one pass over everything, each part in transactions of its own.

    Who makes passes again and again keeps ``last_look`` from one to the next.
    """
    swept = MaintenanceReport(
        leases_expired=rescue_expired(store, kinds, suspect_deaths, last_look),
        retries_due=_until_done(store, requeue_due),
        never_submitted=sum(_until_done(store, partial(cancel_held, kind=kind)) for kind in kinds),
        waited_too_long=sum(_until_done(store, partial(fail_waiting, kind=kind)) for kind in kinds),
        ran_too_long=sum(_until_done(store, partial(fail_overrunning, kind=kind)) for kind in kinds),
        abandoned=sum(_until_done(store, partial(abandon_unused, kind=kind)) for kind in kinds),
        left_behind=settle_left_behind(store),
        stale=_unless_locked(store, partial(rescue_stuck, seconds=stale_seconds)),
        postponed=sum(_until_done(store, partial(mend_postponed, kind=kind)) for kind in kinds),
    )
    for forget in (forget_sent, forget_accepted, forget_samples, forget_workers):
        _unless_locked(store, forget)
    return swept


def _until_done(store: Store, part: Callable[..., int]) -> int:
    """Batch after batch until one is not full; smaller ones when the server says that one took too long."""
    total, limit = 0, BATCH_SIZE
    while True:
        try:
            count = _unless_locked(store, partial(part, limit=limit))
        except StoreUnavailable as error:
            if error.code != "STATEMENT_TIMEOUT" or limit == 1:
                raise
            limit = max(1, limit // 4)
            continue
        total += count
        if count < limit:
            return total


def _unless_locked(store: Store, part: Callable[[Transaction], int]) -> int:
    """One transaction of a part; nothing when others have locked what it needs: the next pass tries again."""
    try:
        return store.write(part, bounded=True)
    except StoreLocked as error:
        _log.info("a part of the sweep is left to the next one", error=str(error))
        return 0


def rescue_expired(store: Store, kinds: Kinds, suspect_deaths: int, last_look: LastLook | None) -> int:
    """Items whose lease ran out go back to the queue, unless their worker may only have been kept from renewing it.

    While nobody can write (a long transaction on SQLite, a server that is away) all leases run out, and those of living
    workers are renewed the moment it is over: but a sweep may come first. So a worker's sweep takes only what had run
    out when it looked the last time, and the time from then on was there to renew it. A single pass knows no last time;
    it passes over workers that are alive on this machine, and leaves them to their own sweeps.
    """
    part = partial(rescue, kinds=kinds, suspect_deaths=suspect_deaths)
    if last_look is None:
        return _until_done(store, partial(part, but_of=store.peers.alive()))
    # In a transaction that writes: so at this moment everybody could.
    before = last_look.move_on(store.write(queries.current_moment))
    return 0 if before is None else _until_done(store, partial(part, before=before))


def rescue(
    transaction: Transaction,
    kinds: Kinds,
    suspect_deaths: int,
    *,
    before: datetime | None = None,
    but_of: Sequence[str] = (),
    limit: int = BATCH_SIZE,
) -> int:
    """Items whose lease has run out, ``before`` then if given, go back to the queue; their worker counts as dead."""
    items = rescue_queries.expired_items(transaction, before=before, spared_workers=but_of, limit=limit)
    return _take_back(transaction, kinds, items, "stopped responding", suspect_deaths)


def rescue_from(store: Store, kinds: Kinds, worker: str, suspect_deaths: int) -> int:
    """The same for all a worker holds that is known to be dead, but for jobs that somebody has locked just now."""

    def part(transaction: Transaction, limit: int) -> int:
        items = rescue_queries.items_held_by(transaction, worker, limit=limit)
        return _take_back(transaction, kinds, items, "died", suspect_deaths)

    return _until_done(store, part)


def holds_any(store: Store, worker: str) -> bool:
    """Does this worker still hold anything?"""
    return store.read(partial(rescue_queries.holds_any, worker=worker), single_statement=True)


def _take_back(
    transaction: Transaction, kinds: Kinds, items: Sequence[HeldItem], what: str, suspect_deaths: int
) -> int:
    """What dead workers held goes back without the loss of a try; the history of each job that runs says so."""
    results = [
        ItemResult(
            item.id, item.lease, item.job_id, ItemRole(item.role), _outcome_of_death(item, kinds, what, suspect_deaths)
        )
        for item in items
    ]
    if not results:
        return 0
    landed_ids = record(transaction, results, SYSTEM)
    by_worker: defaultdict[str, Counter[UUID]] = defaultdict(Counter)
    for item in items:
        if item.id in landed_ids:
            by_worker[item.locked_by][item.job_id] += 1
    for worker, items_by_job in by_worker.items():
        note_death(transaction, worker, items_by_job.total())
        message = f"worker {worker} {what} while it held %s; no try is used up"
        reasons = {
            job_id: message % ("an item" if count == 1 else f"{count:,} items")
            for job_id, count in items_by_job.items()
        }
        change(
            transaction,
            RESCUE,
            partial(rescue_queries.rescue_jobs, job_ids=sorted(items_by_job)),
            SYSTEM,
            reasons=reasons,
        )
        transaction.log(
            f"a worker {what}",
            level="warning",
            worker=worker,
            items_taken_back=items_by_job.total(),
            jobs=len(items_by_job),
        )
    return len(items)


def _outcome_of_death(item: HeldItem, kinds: Kinds, what: str, suspect_deaths: int) -> outcomes.Outcome:
    return after_death(
        f"worker {item.locked_by} {what} while it ran this item alone, after {item.deaths} deaths before",
        item.deaths + 1,
        _policy(kinds, item.kind),
        alone=item.alone is not None and item.alone == item.lease,
        suspect_deaths=suspect_deaths,
    )


def _policy(kinds: Kinds, name: str) -> Policy:
    """A kind this process does not know gets the default rules: its items must not stay locked for ever."""
    return kinds.get(name).policy if name in kinds else Policy()


def requeue_due(transaction: Transaction, *, limit: int = BATCH_SIZE) -> int:
    """Retries whose backoff has passed wait for a worker again."""
    job_ids = queries.due_retries(transaction, limit=limit)
    if not job_ids:
        return 0
    changed_jobs = change(transaction, REQUEUE, partial(queries.requeue_jobs, job_ids=job_ids), SYSTEM)
    transaction.wake(*dict.fromkeys(job.kind for job in changed_jobs))
    return len(changed_jobs)


def cancel_held(transaction: Transaction, kind: Kind, *, limit: int = BATCH_SIZE) -> int:
    """Jobs that nobody submitted within their kind's ``hold_limit`` are canceled; nobody follows such a job."""
    seconds = kind.policy.hold_limit
    if seconds is None:
        return 0
    job_ids = queries.held_too_long(transaction, kind.name, seconds=seconds, limit=limit)
    if not job_ids:
        return 0
    reason = f"nobody submitted the job within {seconds:g} s of its creation; create it again"
    cancel = partial(queries.cancel_held, job_ids=job_ids, killed_by=SYSTEM.killed_by, reason=reason)
    return len(change(transaction, CANCEL, cancel, SYSTEM, reason=reason))


def fail_waiting(transaction: Transaction, kind: Kind, *, limit: int = BATCH_SIZE) -> int:
    """Jobs no worker took within their kind's ``wait_limit`` fail as resource exhaustion."""
    seconds = kind.policy.wait_limit
    if seconds is None:
        return 0
    job_ids = queries.waited_too_long(transaction, kind.name, seconds=seconds, limit=limit)
    error = f"no worker took the job within {seconds:g} s; submit again later"
    return _fail_overdue(transaction, job_ids, error, "QUEUE_WAIT_EXCEEDED", None)


def fail_overrunning(transaction: Transaction, kind: Kind, *, limit: int = BATCH_SIZE) -> int:
    """Jobs that run longer than their kind's ``run_limit`` fail, killed by the clock."""
    seconds = kind.policy.run_limit
    if seconds is None:
        return 0
    job_ids = queries.ran_too_long(transaction, kind.name, seconds=seconds, limit=limit)
    return _fail_overdue(
        transaction, job_ids, f"the job ran longer than {seconds:g} s", "JOB_TIMEOUT", KilledBy.TIMEOUT
    )


def _fail_overdue(
    transaction: Transaction, job_ids: Sequence[UUID], error: str, code: str, killed_by: KilledBy | None
) -> int:
    if not job_ids:
        return 0
    error_type = ErrorType.RETRYABLE if killed_by is None else ErrorType.TERMINAL
    fail = partial(
        queries.fail_overdue,
        job_ids=job_ids,
        error=error,
        code=code,
        error_type=error_type,
        error_class=None if killed_by is None else TimeLimitExceeded.__name__,
        killed_by=killed_by,
    )
    changed_jobs = change(transaction, FAIL, fail, SYSTEM, reason=error)
    fail_followers(transaction, jobs_with_followers(changed_jobs), SYSTEM)
    transaction.stop(*(job.id for job in changed_jobs))
    return len(changed_jobs)


def abandon_unused(transaction: Transaction, kind: Kind, *, limit: int = BATCH_SIZE) -> int:
    """Results nobody used within their kind's ``abandon_after`` are abandoned."""
    seconds = kind.policy.abandon_after
    if seconds is None:
        return 0
    job_ids = queries.unused_results(transaction, kind.name, seconds=seconds, limit=limit)
    if not job_ids:
        return 0
    abandon = partial(queries.abandon_jobs, job_ids=job_ids, prune_results=kind.policy.prune_result)
    return len(change(transaction, ABANDON, abandon, SYSTEM, reason="nobody used the result"))


def settle_left_behind(store: Store) -> int:
    """Followers whose leader does not lead any more end as it did, or one of them inherits the work.

    Whoever ends, cancels or pauses a leader sees to its followers in the same transaction. This is for the others:
    followers that somebody had locked then, and what a program of another version beside this one left behind. Each
    leader is a transaction of its own, so that one whose followers are locked keeps no other.
    """
    leader_ids = store.read(partial(queries.left_behind, limit=BATCH_SIZE), single_statement=True)
    parts = (partial(_settle_followers, leader_id=leader_id) for leader_id in dict.fromkeys(leader_ids))
    return sum(_unless_locked(store, part) for part in parts)


def _settle_followers(transaction: Transaction, leader_id: UUID) -> int:
    """How many followers of one leader are settled: none while somebody has the leader locked."""
    state = queries.lock_leader(transaction, leader_id)
    if state is None:
        return 0
    if state in WELL_ENDED:
        return succeed_followers(transaction, [leader_id], SYSTEM)
    if state is JobState.FAILED:
        return fail_followers(transaction, [leader_id], SYSTEM)
    successor = None if state in FLOWING else hand_over(transaction, leader_id)
    if successor is None:
        return 0
    reschedule(transaction, successor)
    return 1


def rescue_stuck(transaction: Transaction, seconds: float) -> int:
    """Jobs that should run but that nothing would wake any more are repaired from their items."""
    job_ids = queries.stale_jobs(transaction, seconds=seconds, limit=BATCH_SIZE)
    for job_id in job_ids:
        reschedule(transaction, job_id)
    return len(job_ids)


def mend_postponed(transaction: Transaction, kind: Kind, *, limit: int = BATCH_SIZE) -> int:
    """Jobs whose next claim is set to a later time although they have items to hand out are due now."""
    job_ids = queries.postponed_jobs(transaction, kind.name, limit=limit)
    for job_id in job_ids:
        reschedule(transaction, job_id)
    return len(job_ids)
