"""One maintenance pass: what nobody else will notice. Safe to run at any time, by any number of processes at once.

Each part finds a bounded number of rows, passes over those another pass holds, and changes them by the same guarded
statements as everybody else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.decisions import after_death
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import FLOWING, ErrorType, ItemRole, JobState, KilledBy
from penstock.lifecycle.transitions import ABANDON, FAIL, REQUEUE, RESCUE
from penstock.operations.change import Changed, change
from penstock.operations.control import go_on
from penstock.operations.follow import fail_followers, hand_over, succeed_followers
from penstock.operations.record import Ended, record
from penstock.operations.workers import note_death
from penstock.store.engine import Store, Transaction
from penstock.store.statements import sweep as statements

AT_ONCE = 1_000
_GOOD_ENDS = frozenset({JobState.SUCCEEDED, JobState.COMMITTED, JobState.ABANDONED})


@dataclass(frozen=True, slots=True)
class Swept:
    """What a pass put right."""

    leases_expired: int = 0
    retries_due: int = 0
    waited_too_long: int = 0
    ran_too_long: int = 0
    abandoned: int = 0
    left_behind: int = 0
    stale: int = 0
    postponed: int = 0

    @property
    def total(self) -> int:
        """Everything together."""
        return sum(getattr(self, one.name) for one in fields(self))


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
) -> Swept:
    """Make one pass over everything, each part in transactions of its own.

    Who makes passes again and again keeps ``last_look`` from one to the next.
    """
    return Swept(
        leases_expired=rescue_expired(store, kinds, suspect_deaths, last_look),
        retries_due=_until_done(store, requeue_due),
        waited_too_long=sum(_until_done(store, lambda one, kind=kind: fail_waiting(one, kind)) for kind in kinds),
        ran_too_long=sum(_until_done(store, lambda one, kind=kind: fail_overrunning(one, kind)) for kind in kinds),
        abandoned=sum(_until_done(store, lambda one, kind=kind: abandon_unused(one, kind)) for kind in kinds),
        left_behind=store.write(settle_left_behind),
        stale=store.write(lambda one: mend_stale(one, stale_seconds)),
        postponed=sum(_until_done(store, lambda one, kind=kind: mend_postponed(one, kind)) for kind in kinds),
    )


def _until_done(store: Store, part: Any) -> int:
    """Batch after batch until one is not full."""
    total = 0
    while count := store.write(part):
        total += count
        if count < AT_ONCE:
            break
    return total


def rescue_expired(store: Store, kinds: Kinds, suspect_deaths: int, last_look: LastLook | None) -> int:
    """Items whose lease ran out go back in line, unless their worker may only have been kept from renewing it.

    While nobody can write (a long transaction on SQLite, a server that is away) all leases run out, and those of living
    workers are renewed the moment it is over: but a sweep may come first. So a worker's sweep takes only what had run
    out when it looked the last time, and the time from then on was there to renew it. A single pass knows no last time;
    it passes over workers that are alive on this machine, and leaves them to their own sweeps.
    """
    if last_look is None:
        alive = store.neighbours.alive()
        return _until_done(store, lambda one: rescue(one, kinds, suspect_deaths, but_of=alive))
    # In a transaction that writes: so at this moment everybody could.
    before = last_look.move_on(store.write(lambda one: one.run(statements.current_moment(one.ways)).scalar()))
    if before is None:
        return 0
    return _until_done(store, lambda one: rescue(one, kinds, suspect_deaths, before=before))


def rescue(
    transaction: Transaction,
    kinds: Kinds,
    suspect_deaths: int,
    *,
    before: datetime | None = None,
    but_of: Sequence[str] = (),
) -> int:
    """Items whose lease has run out, ``before`` then if that is given, go back in line; their worker counts as dead."""
    asked = {"the_limit": AT_ONCE, "the_moment": before, "the_workers": list(but_of)}
    rows = transaction.run(statements.expired_items(transaction.ways), asked).all()
    return _take_back(transaction, kinds, rows, "stopped responding", suspect_deaths)


def rescue_from(store: Store, kinds: Kinds, worker: str, suspect_deaths: int) -> int:
    """The same for all a worker holds that is known to be dead."""

    def part(transaction: Transaction) -> int:
        named = {"the_worker": worker, "the_limit": AT_ONCE}
        rows = transaction.run(statements.items_held_by(transaction.ways), named).all()
        return _take_back(transaction, kinds, rows, "died", suspect_deaths)

    return _until_done(store, part)


def _take_back(transaction: Transaction, kinds: Kinds, rows: Sequence[Any], what: str, suspect_deaths: int) -> int:
    """What dead workers held goes back without the loss of a try; the history of each job that runs says so."""
    ended = [
        Ended(row.id, row.lease, row.job_id, ItemRole(row.role), _orphaned(row, kinds, what, suspect_deaths))
        for row in rows
    ]
    if not ended:
        return 0
    landed = record(transaction, ended, SYSTEM)
    by_worker: defaultdict[str, Counter[UUID]] = defaultdict(Counter)
    for row in rows:
        if row.id in landed:
            by_worker[row.locked_by][row.job_id] += 1
    for worker, held in by_worker.items():
        note_death(transaction, worker, held.total())
        said = f"worker {worker} {what} while it held %s; no try is used up"
        reasons = {job_id: said % ("an item" if count == 1 else f"{count:,} items") for job_id, count in held.items()}
        parameters = {"the_jobs": sorted(held)}
        change(transaction, RESCUE, statements.rescue_jobs(transaction.ways), parameters, SYSTEM, reasons=reasons)
        transaction.log(
            f"a worker {what}", level="warning", worker=worker, items_taken_back=held.total(), jobs=len(held)
        )
    return len(rows)


def _orphaned(row: Any, kinds: Kinds, what: str, suspect_deaths: int) -> outcomes.Outcome:
    deaths = row.deaths + 1
    return after_death(
        f"worker {row.locked_by} {what} while it ran this item alone, after {row.deaths} deaths before",
        deaths,
        _policy(kinds, row.kind),
        alone=row.alone is not None and row.alone == row.lease,
        suspect_deaths=suspect_deaths,
    )


def _policy(kinds: Kinds, name: str) -> Policy:
    """A kind this process does not know gets the default rules: its items must not stay locked for ever."""
    return kinds.get(name).policy if name in kinds else Policy()


def requeue_due(transaction: Transaction) -> int:
    """Retries whose backoff has passed wait for a worker again."""
    ids = transaction.run(statements.due_retries(transaction.ways), {"the_limit": AT_ONCE}).scalars()
    if not ids:
        return 0
    changed = change(transaction, REQUEUE, statements.requeue_due(transaction.ways), {"the_jobs": ids}, SYSTEM)
    transaction.wake(*dict.fromkeys(one.kind for one in changed))
    return len(changed)


def fail_waiting(transaction: Transaction, kind: Kind) -> int:
    """Jobs no worker took within their kind's ``wait_limit`` fail as resource exhaustion."""
    limit = kind.policy.wait_limit
    if limit is None:
        return 0
    error = f"no worker took the job within {limit:g} s; submit again later"
    return _fail_overdue(transaction, kind, statements.waited_too_long, limit, error, "QUEUE_WAIT_EXCEEDED", None)


def fail_overrunning(transaction: Transaction, kind: Kind) -> int:
    """Jobs that run longer than their kind's ``run_limit`` fail, killed by the clock."""
    limit = kind.policy.run_limit
    if limit is None:
        return 0
    error = f"the job ran longer than {limit:g} s"
    return _fail_overdue(transaction, kind, statements.ran_too_long, limit, error, "JOB_TIMEOUT", KilledBy.TIMEOUT)


def _fail_overdue(
    transaction: Transaction, kind: Kind, overdue: Any, limit: float, error: str, code: str, killed_by: KilledBy | None
) -> int:
    ways = transaction.ways
    found = {"the_kind": kind.name, "the_seconds": limit, "the_limit": AT_ONCE}
    ids = transaction.run(overdue(ways), found).scalars()
    if not ids:
        return 0
    parameters = {
        "the_jobs": ids,
        "the_error": error,
        "the_code": code,
        "the_error_type": ErrorType.RETRYABLE.value if killed_by is None else ErrorType.TERMINAL.value,
        "the_killed_by": None if killed_by is None else killed_by.value,
    }
    changed = change(transaction, FAIL, statements.fail_overdue(ways), parameters, SYSTEM, reason=error)
    fail_followers(transaction, changed, SYSTEM)
    transaction.stop(*(one.id for one in changed))
    return len(changed)


def abandon_unused(transaction: Transaction, kind: Kind) -> int:
    """Results nobody used within their kind's ``abandon_after`` are abandoned."""
    limit = kind.policy.abandon_after
    if limit is None:
        return 0
    found = {"the_kind": kind.name, "the_seconds": limit, "the_limit": AT_ONCE}
    ids = transaction.run(statements.unused_results(transaction.ways), found).scalars()
    if not ids:
        return 0
    statement = statements.abandon_unused(transaction.ways, prune=kind.policy.prune_result)
    return len(change(transaction, ABANDON, statement, {"the_jobs": ids}, SYSTEM, reason="nobody used the result"))


def settle_left_behind(transaction: Transaction) -> int:
    """Followers whose leader does not lead any more end as it did, or one of them inherits the work.

    Whoever ends, cancels or pauses a leader sees to its followers in the same transaction. This is for what did not: a
    program of another version beside this one, a defect.
    """
    ids = transaction.run(statements.left_behind(transaction.ways), {"the_limit": AT_ONCE}).scalars()
    if not ids:
        return 0
    leaders = transaction.run(statements.lock_leaders(transaction.ways), {"the_jobs": list(dict.fromkeys(ids))}).all()
    for row in leaders:
        leader, state = Changed(row.id, row.kind, followed=True), JobState(row.state)
        if state in _GOOD_ENDS:
            succeed_followers(transaction, [leader], SYSTEM)
        elif state is JobState.FAILED:
            fail_followers(transaction, [leader], SYSTEM)
        elif state not in FLOWING:
            heir = hand_over(transaction, row.id)
            if heir is not None:
                go_on(transaction, heir)
    return len(leaders)


def mend_stale(transaction: Transaction, seconds: float) -> int:
    """Jobs that should flow but have nothing that will move them are put back on the way their items show."""
    found = {"the_seconds": seconds, "the_limit": AT_ONCE}
    ids = transaction.run(statements.stale_jobs(transaction.ways), found).scalars()
    for job_id in ids:
        go_on(transaction, job_id)
    return len(ids)


def mend_postponed(transaction: Transaction, kind: Kind) -> int:
    """Jobs that wait for a turn in the future although they have something to hand out get it now."""
    found = {"the_kind": kind.name, "the_limit": AT_ONCE}
    ids = transaction.run(statements.postponed_jobs(transaction.ways), found).scalars()
    for job_id in ids:
        go_on(transaction, job_id)
    return len(ids)
