"""Claiming: jobs first, items second.

A few jobs whose turn it is are locked, those not served for longest first, so that a job of a million rows never
starves a job of one. Each hands out its share of items by position, those that came back before fresh ones. Taking
them, the lease that fences them, START and its history row are one transaction: a worker that dies before the commit
has taken nothing, one that dies after it holds a lease that runs out.

Whoever pauses or cancels a job changes the row the claim has locked, so after their commit no item starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from uuid_utils.compat import uuid7

from penstock.lifecycle.callers import worker
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transitions import REQUEUE, START
from penstock.operations.single_flight import start_followers
from penstock.operations.watermarks import Watermarks, discover, look
from penstock.store.engine import Store
from penstock.store.job_changes import change, jobs_with_followers, log_change
from penstock.store.queries import claim as queries
from penstock.store.queries import line, served_jobs
from penstock.store.queries.claim import NewLease, ReturnedItem, Stretch, TakenAgain, TakenItem, TakenOfJob
from penstock.store.queries.line import PickedJob
from penstock.store.queries.maintenance import requeue_jobs
from penstock.store.queries.served_jobs import ServedJob, WholeClaim
from penstock.store.rows import claimed_from
from penstock.store.transaction import Transaction

_POSITION = attrgetter("position")
_SOON = 0.02
"""When to repeat a claim that was not filled, unless a notice comes before: the work just taken goes first."""
_JOBS_COUNTED = 1_000
_NEVER = 2**31
"""Deaths that no item reaches."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim took, and when to claim again if that was less than was asked for."""

    items: Sequence[ClaimedItem]
    wait: float | None
    """Seconds until the kind's next job is due; None when its queue is empty."""
    careful: bool = False
    """Are there items that a dead worker held? They are taken only when they can start immediately."""
    suspect_deaths: int = 0
    """The only item is a suspect: so many workers died while they held it."""


@dataclass(slots=True)
class _Share:
    """What one job hands out in this claim."""

    job: PickedJob
    last: int
    returned: int = 0
    next_claim_at: datetime | None = None
    items: list[TakenItem | TakenOfJob | TakenAgain] = field(default_factory=list)

    @property
    def has_more(self) -> bool:
        return self.last < self.job.last_claimable

    def served_job(self) -> ServedJob:
        """What to write about the job."""
        return ServedJob(self.job.id, self.last, self.returned, self.has_more, self.next_claim_at)


@dataclass(frozen=True, slots=True)
class Care:
    """How items are taken that were held by workers that died.

    A slice is claimed in one go, so most of what a worker holds has not begun when it dies. What was held then is taken
    again only as it can begin at once: whoever is held in further deaths was running. One held in ``suspect_deaths`` of
    them is a suspect, and is all that its claim takes.
    """

    free: int
    """Free slots of the runner."""
    suspect_deaths: int

    def choose(self, returned_items: Sequence[ReturnedItem]) -> _Choice:
        """Which of the items that came back, in their order, to take.

        >>> Care(2, 5).choose([ReturnedItem(id, deaths) for id, deaths in [(1, 0), (2, 1), (3, 1), (4, 0)]])
        _Choice(item_ids=[1, 2], careful=True, suspect_deaths=0)
        >>> Care(2, 5).choose([ReturnedItem(id, deaths) for id, deaths in [(1, 5), (2, 0)]])
        _Choice(item_ids=[1], careful=True, suspect_deaths=5)
        """
        item_ids: list[int] = []
        careful = False
        for item_id, deaths in returned_items:
            if deaths >= self.suspect_deaths:
                return _Choice([item_id], True, deaths) if not item_ids else _Choice(item_ids, True)
            careful = careful or deaths > 0
            if careful and len(item_ids) >= self.free:
                break
            item_ids.append(item_id)
        return _Choice(item_ids, careful)


class _Choice(NamedTuple):
    """Which of the items that came back are taken."""

    item_ids: list[int]
    careful: bool
    """Is care needed: did a dead worker hold any of them?"""
    suspect_deaths: int = 0
    """The only item is a suspect: so many workers died while they held it."""


def claim(
    store: Store,
    kind: str,
    worker_name: str,
    *,
    size: int,
    lease_seconds: float,
    care: Care | None = None,
    job_id: UUID | None = None,
    marks: Watermarks | None = None,
) -> Claim:
    """Take up to about ``size`` items of ``kind`` for a worker; of one job alone where it is named.

    ``care`` is for what dead workers held; without it, there is room for all and nobody is a suspect.
    A database server is asked once where one statement can do it all, from the caller's ``marks`` on; where that
    brought nothing although a job is due (something came back, it is followed), and in our own process always, step by
    step. Nobody waits for a lock: jobs that somebody else has locked are left out, and if only these are due the claim
    is worth repeating at once.
    """
    in_steps = partial(
        claim_in_steps, kind=kind, worker_name=worker_name, size=size, lease_seconds=lease_seconds, care=care
    )
    if not store.dialect.claims_in_one_statement or job_id is not None:
        return store.write(partial(in_steps, job_id=job_id), bounded=True)
    known_marks = marks or Watermarks()
    if known_marks.asks_for_priorities:
        discover(store, kind, known_marks)

    def claim_at_once(transaction: Transaction) -> WholeClaim:
        lease = NewLease(uuid7(), worker_name, lease_seconds)
        whole_claim = served_jobs.claim_in_one_statement(transaction, kind, known_marks.claim_looks(), size, lease)
        log_change(transaction, START, whole_claim.started_jobs, kind, worker(worker_name))
        return whole_claim

    items, any_more, _ = store.write(claim_at_once, single_statement=True)
    if items:
        return Claim(items, 0.0 if any_more or len(items) >= size else _SOON)
    wait = look(store, kind, known_marks)
    if wait is None or wait > 0:
        return Claim((), wait)
    if known_marks.asks_for_priorities:
        discover(store, kind, known_marks)  # there are new ones, or the clock was set back and the look has begun again
    return store.write(partial(in_steps, marks=known_marks), bounded=True)


def claim_in_steps(
    transaction: Transaction,
    kind: str,
    worker_name: str,
    *,
    size: int,
    lease_seconds: float,
    care: Care | None = None,
    job_id: UUID | None = None,
    marks: Watermarks | None = None,
) -> Claim:
    """A claim in as many statements as it takes; on a server from ``marks`` on, but of a job that is named."""
    if marks is None:
        jobs = line.pick_jobs(transaction, kind, size, job_id=job_id)
    else:
        jobs = _pick_from(transaction, kind, size, marks)
    if not jobs:
        return Claim((), 0.0 if marks else next_turn(transaction, kind, job_id))
    lease = NewLease(uuid7(), worker_name, lease_seconds)
    shares = {job.id: _Share(job, job.last_claimed) for job in jobs}
    careful, suspect_deaths = _serve(transaction, shares, lease, size, care or Care(size, _NEVER))
    items = [item for share in shares.values() for item in claimed_from(share.items, share.job, kind, lease.lease)]
    if len(jobs) == 1:
        items.sort(key=_POSITION)
    # Whether there is more is asked by the next claim, which need not be waited for before the work begins.
    full = careful or len(items) >= size or any(share.has_more for share in shares.values())
    return Claim(items, 0.0 if full else _SOON, careful, suspect_deaths)


def next_turn(transaction: Transaction, kind: str, job_id: UUID | None = None) -> float | None:
    """Seconds until a job of ``kind`` is due: 0 when one is due now, None when its queue is empty."""
    soonest, now = line.next_turn(transaction, kind, job_id=job_id)
    return None if soonest is None else max(0.0, (soonest - now).total_seconds())


def count_claimable(transaction: Transaction, kind: str) -> int:
    """About how many items of ``kind`` could be claimed now."""
    return line.count_claimable(transaction, kind, jobs_limit=_JOBS_COUNTED)


def _pick_from(transaction: Transaction, kind: str, limit: int, marks: Watermarks) -> list[PickedJob]:
    """Lock them first, and then read them as they are."""
    job_ids = line.lock_due(transaction, kind, marks.claim_looks(), limit)
    return line.picked_jobs(transaction, job_ids) if job_ids else []


def _take_returned(
    transaction: Transaction, shares: dict[UUID, _Share], lease: NewLease, size: int, care: Care
) -> _Choice:
    """Items that came back go before fresh ones: their owners have waited longer."""
    holders = [share.job.id for share in shares.values() if share.job.returned_items]
    if not holders:
        return _Choice([], False)
    choice = care.choose(queries.returned_items(transaction, holders, size))
    if choice.item_ids:
        for item in queries.take_returned(transaction, choice.item_ids, lease):
            share = shares[item.job_id]
            share.returned += 1
            share.items.append(item)
    return choice


def _take_fresh(transaction: Transaction, shares: dict[UUID, _Share], lease: NewLease, limit: int) -> None:
    """The next stretch of each job's positions."""
    stretches = []
    for share in shares.values():
        share.last = min(share.job.last_claimed + limit, share.job.last_claimable)
        if share.last > share.job.last_claimed:
            stretches.append(Stretch(share.job.id, share.job.last_claimed + 1, share.last))
    if len(stretches) == 1:
        shares[stretches[0].job_id].items += queries.take_stretch(transaction, stretches[0], lease)
    elif stretches:
        for item in queries.take_stretches(transaction, stretches, lease):
            shares[item.job_id].items.append(item)


def _line_up_returned(transaction: Transaction, shares: dict[UUID, _Share]) -> None:
    """A job whose only open items are in backoff is due again when the first of them is ready."""
    waiting = [
        share.job.id for share in shares.values() if share.job.returned_items > share.returned and not share.has_more
    ]
    if waiting:
        for job_id, ready_at in queries.soonest_returned(transaction, waiting):
            shares[job_id].next_claim_at = ready_at


def _serve(
    transaction: Transaction, shares: dict[UUID, _Share], lease: NewLease, size: int, care: Care
) -> tuple[bool, int]:
    """Take what each job hands out, and write that down; the answer is whether with care, and a suspect's deaths."""
    caller = worker(lease.worker)
    choice = _take_returned(transaction, shares, lease, size, care)
    if not choice.careful:  # beside what needs care, nothing fresh is taken
        returned = sum(share.returned for share in shares.values())
        _take_fresh(transaction, shares, lease, max(1, (size - returned) // len(shares)))
    if choice.careful or any(share.items for share in shares.values()):
        # Who hands out nothing beside others is not served: its turn stays as it is.
        shares = {job_id: share for job_id, share in shares.items() if share.items}
    _line_up_returned(transaction, shares)
    due = [share.job.id for share in shares.values() if share.job.state == JobState.RETRYING]
    if due:
        change(transaction, REQUEUE, partial(requeue_jobs, job_ids=due), caller)
    running = [share.served_job() for share in shares.values() if share.job.state == JobState.RUNNING]
    starting = [share.served_job() for share in shares.values() if share.job.state != JobState.RUNNING]
    if starting:
        started_jobs = change(transaction, START, partial(served_jobs.start_served, served_jobs=starting), caller)
        start_followers(transaction, jobs_with_followers(started_jobs), caller)
    if running:
        served_jobs.note_served(transaction, running)
    return choice.careful, choice.suspect_deaths
