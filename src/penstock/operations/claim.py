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
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from penstock.lifecycle.callers import Caller, worker
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transitions import REQUEUE, START
from penstock.operations.change import change
from penstock.operations.single_flight import start_followers
from penstock.operations.watermarks import Watermarks, discover, look
from penstock.store.engine import Store
from penstock.store.rows import claimed_at_once, claimed_from
from penstock.store.statements import claim as statements
from penstock.store.statements import line
from penstock.store.statements.maintenance import requeue_due
from penstock.store.transaction import Transaction

_POSITION = attrgetter("position")
_SOON = 0.02
"""When a claim that was not filled is worth repeating, if nobody says so before: the work just taken goes first."""


_NEVER = 2**31
"""Deaths that no item reaches."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim brought, and when to come again if it brought less than was asked for."""

    items: Sequence[ClaimedItem]
    wait: float | None
    """Seconds until the kind's next turn; None when nothing is in line."""
    careful: bool = False
    """Are there items that were in a dead worker's hands? Such are only taken when they can begin at once."""
    suspect_deaths: int = 0
    """The one item is a suspect, which was in hand in so many deaths of workers."""


@dataclass(slots=True)
class _Share:
    """What one job hands out in this claim."""

    job: Any
    last: int
    returned: int = 0
    next_claim_at: datetime | None = None
    taken: list[Any] = field(default_factory=list)

    @property
    def more(self) -> bool:
        return bool(self.last < self.job.last_claimable)


@dataclass(frozen=True, slots=True)
class Care:
    """How items are taken that were in the hands of workers that died.

    A slice is claimed in one go, so most of what a worker holds has not begun when it dies. What was held then is taken
    again only as it can begin at once: whoever is held in further deaths was running. One held in ``suspect_deaths`` of
    them is a suspect, and is all that its claim takes.
    """

    free: int
    """Places of the runner in which nothing runs."""
    suspect_deaths: int

    def choose(self, returned: Sequence[Any]) -> tuple[list[int], bool, int]:
        """Of items that came back, in their order with their deaths: which to take, whether care is needed, and the
        deaths of a suspect.

        >>> Care(2, 5).choose([(1, 0), (2, 1), (3, 1), (4, 0)])
        ([1, 2], True, 0)
        >>> Care(2, 5).choose([(1, 5), (2, 0)])
        ([1], True, 5)
        """
        chosen: list[int] = []
        careful = False
        for item_id, deaths in returned:
            if deaths >= self.suspect_deaths:
                return ([item_id], True, deaths) if not chosen else (chosen, True, 0)
            careful = careful or deaths > 0
            if careful and len(chosen) >= self.free:
                break
            chosen.append(item_id)
        return chosen, careful, 0


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
    taking: dict[str, Any] = {
        "kind": kind, "worker_name": worker_name, "size": size, "lease_seconds": lease_seconds,
    }  # fmt: skip
    in_steps = partial(claim_in_steps, care=care, **taking)
    if store.dialect.in_our_process or job_id is not None:
        return store.write(partial(in_steps, job_id=job_id), bounded=True)
    marks = marks or Watermarks()
    if marks.fresh:
        discover(store, kind, marks)
    claimed = store.write(partial(claim_at_once, marks=marks, **taking), at_once=True)
    if claimed is not None:
        return claimed
    wait = look(store, kind, marks)
    if wait is None or wait > 0:
        return Claim((), wait)
    if marks.fresh:
        discover(store, kind, marks)  # the clock was set back, and the look has begun again
    return store.write(partial(in_steps, marks=marks), bounded=True)


def claim_at_once(
    transaction: Transaction, kind: str, worker_name: str, *, size: int, lease_seconds: float, marks: Watermarks
) -> Claim | None:
    """A claim in a single statement; None when that could take nothing."""
    lease: UUID = uuid7()
    caller = worker(worker_name)
    asked = {"the_kind": kind, "the_limit": size, "the_actor": caller.actor.value, "the_actor_id": caller.id}
    taking = {"the_lease": lease, "the_worker": worker_name, "the_lease_seconds": lease_seconds}
    looks = transaction.dialect.parameters("looks", line.LOOKS, marks.claim_looks())
    rows = transaction.rows(statements.claim_at_once(transaction.dialect), asked | taking | looks)
    if not rows:
        return None
    items, more = claimed_at_once(rows, kind, lease)
    return Claim(items, 0.0 if more or len(items) >= size else _SOON)


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
    jobs = _pick_from(transaction, kind, size, marks) if marks else _pick(transaction, kind, size, job_id)
    if not jobs:
        return Claim((), 0.0 if marks else next_turn(transaction, kind, job_id))
    lease: UUID = uuid7()
    taking = {"the_lease": lease, "the_worker": worker_name, "the_lease_seconds": lease_seconds}
    shares = {job.id: _Share(job, job.last_claimed) for job in jobs}
    careful, suspect_deaths = _serve(transaction, shares, taking, size, care or Care(size, _NEVER), worker(worker_name))
    items = [one for share in shares.values() for one in claimed_from(share.taken, share.job, kind, lease)]
    if len(jobs) == 1:
        items.sort(key=_POSITION)
    # Whether there is more is asked by the next claim, which need not be waited for before the work begins.
    full = careful or len(items) >= size or any(share.more for share in shares.values())
    return Claim(items, 0.0 if full else _SOON, careful, suspect_deaths)


def next_turn(transaction: Transaction, kind: str, job_id: UUID | None = None) -> float | None:
    """Seconds until a job of ``kind`` has its turn: 0 when one is due, None when none is in line."""
    statement = line.next_turn(transaction.dialect, one=job_id is not None)
    soonest, now = transaction.run(statement, {"the_kind": kind, "the_job_id": job_id}).one()
    return None if soonest is None else max(0.0, (soonest - now).total_seconds())


def _pick(transaction: Transaction, kind: str, limit: int, job_id: UUID | None) -> Sequence[Any]:
    statement = line.pick_jobs(transaction.dialect, one=job_id is not None)
    return transaction.run(statement, {"the_kind": kind, "the_limit": limit, "the_job_id": job_id}).all()


def _pick_from(transaction: Transaction, kind: str, limit: int, marks: Watermarks) -> Sequence[Any]:
    """Lock them first, and then read them as they are."""
    dialect = transaction.dialect
    asked = {"the_kind": kind, "the_limit": limit} | dialect.parameters("looks", line.LOOKS, marks.claim_looks())
    ids = transaction.run(line.lock_due(dialect), asked).scalars()
    return transaction.run(line.picked_jobs(dialect), {"the_jobs": ids}).all() if ids else ()


def _take_returned(
    transaction: Transaction, shares: dict[UUID, _Share], taking: dict[str, Any], size: int, care: Care
) -> tuple[int, bool, int]:
    """Items that came back go before fresh ones: their people have waited longer.

    The answer is how many were taken, whether care is needed, and the deaths of the suspect it is, if it is one.
    """
    holders = [share.job.id for share in shares.values() if share.job.returned_items]
    if not holders:
        return 0, False, 0
    asked = {"the_jobs": holders, "the_limit": size}
    ids, careful, suspect_deaths = care.choose(transaction.rows(statements.returned_items(transaction.dialect), asked))
    if not ids:
        return 0, careful, 0
    taken = transaction.rows(statements.take_returned(transaction.dialect), taking | {"the_items": ids})
    for row in taken:
        share = shares[row[-1]]
        share.returned += 1
        share.taken.append(row)
    return len(taken), careful, suspect_deaths


def _take_fresh(transaction: Transaction, shares: dict[UUID, _Share], taking: dict[str, Any], most: int) -> None:
    """The next stretch of each job's positions."""
    dialect = transaction.dialect
    ranges = []
    for share in shares.values():
        share.last = min(share.job.last_claimed + most, share.job.last_claimable)
        if share.last > share.job.last_claimed:
            ranges.append((share.job.id, share.job.last_claimed + 1, share.last))
    if len(ranges) == 1:
        job_id, first, last = ranges[0]
        stretch = {"the_job_id": job_id, "the_first": first, "the_last": last}
        shares[job_id].taken += transaction.rows(statements.take_fresh_of_one(dialect), taking | stretch)
    elif ranges:
        stretches = dialect.parameters("ranges", statements.RANGES, ranges)
        for row in transaction.rows(statements.take_fresh(dialect), taking | stretches):
            shares[row[-1]].taken.append(row)


def _line_up_returned(transaction: Transaction, shares: dict[UUID, _Share]) -> None:
    """A job whose only open items are in backoff has its next turn when the first of them is ready."""
    waiting = [
        share.job.id for share in shares.values() if share.job.returned_items > share.returned and not share.more
    ]
    if waiting:
        for job_id, soonest in transaction.run(
            statements.soonest_returned(transaction.dialect), {"the_jobs": waiting}
        ).all():
            shares[job_id].next_claim_at = soonest


def _serve(
    transaction: Transaction, shares: dict[UUID, _Share], taking: dict[str, Any], size: int, care: Care, caller: Caller
) -> tuple[bool, int]:
    """Take what each job hands out, and write that down; the answer is whether with care, and a suspect's deaths."""
    returned, careful, suspect_deaths = _take_returned(transaction, shares, taking, size, care)
    if careful:
        # Nothing fresh beside what needs care, and who hands out nothing is not served: its turn stays as it is.
        shares = {job_id: share for job_id, share in shares.items() if share.taken}
    else:
        _take_fresh(transaction, shares, taking, max(1, (size - returned) // len(shares)))
    jobs = [share.job for share in shares.values()]
    _line_up_returned(transaction, shares)
    due = [job.id for job in jobs if job.state == JobState.RETRYING]
    if due:
        change(transaction, REQUEUE, requeue_due(transaction.dialect), {"the_jobs": due}, caller)
    starting, running = _notes(shares)
    dialect = transaction.dialect
    if starting:
        parameters = dialect.parameters("served", statements.SERVED, starting)
        started = change(transaction, START, statements.start_served(dialect), parameters, caller)
        start_followers(transaction, [one.id for one in started if one.has_followers], caller)
    if running:
        transaction.run(statements.note_served(dialect), dialect.parameters("served", statements.SERVED, running))
    return careful, suspect_deaths


def _notes(shares: dict[UUID, _Share]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """What to write about the jobs that start now, and about those that run already."""
    starting: list[tuple[object, ...]] = []
    running: list[tuple[object, ...]] = []
    for share in shares.values():
        row = (share.job.id, share.last, share.returned, share.more, share.next_claim_at)
        (running if share.job.state == JobState.RUNNING else starting).append(row)
    return starting, running
