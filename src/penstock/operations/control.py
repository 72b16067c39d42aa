"""What people do to a job: pause, resume, cancel, commit, abandon. Each is O(1), however many items the job has."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import Job
from penstock.lifecycle.payloads import storable_text
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transitions import ABANDON, CANCEL, COMMIT, PAUSE, RESUME, START, Transition
from penstock.operations.change import Changed, change
from penstock.operations.follow import hand_over, start_followers
from penstock.operations.inspect import get_job, not_found
from penstock.operations.record import settle_from_rows
from penstock.store.engine import Transaction
from penstock.store.statements import control as statements


def pause(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """PAUSE: claimed items finish, no new ones start."""
    _change(transaction, PAUSE, job_id, caller, reason)
    return get_job(transaction, job_id, caller)


def resume(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """RESUME: the flow goes on; a job whose work ended while it was paused ends now."""
    _change(transaction, RESUME, job_id, caller, reason)
    go_on(transaction, job_id)
    return get_job(transaction, job_id, caller)


def cancel(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """CANCEL: stopped for good. Who waits for the same work is served all the same."""
    extra = {"the_killed_by": caller.killed_by.value}
    changed = _change(transaction, CANCEL, job_id, caller, reason, extra)
    transaction.stop(job_id)
    if changed.followed:
        heir = hand_over(transaction, job_id)
        if heir is not None:
            go_on(transaction, heir)
    return get_job(transaction, job_id, caller)


def commit(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """COMMIT: the owner used the result."""
    _change(transaction, COMMIT, job_id, caller, reason)
    return get_job(transaction, job_id, caller)


def abandon(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """ABANDON: the owner does not want the result."""
    _change(transaction, ABANDON, job_id, caller, reason)
    return get_job(transaction, job_id, caller)


def go_on(transaction: Transaction, job_id: UUID) -> None:
    """Let a job flow as its items' rows say: hand out, wait for the last ones, finalize or end."""
    ways, named = transaction.ways, {"the_job_id": job_id}
    row = transaction.run(statements.restore_turn(ways), named).one_or_none()
    if row is None:
        return
    if row.turn_at is not None:
        transaction.wake(row.kind)
        return
    if row.state == JobState.QUEUED:
        for one in change(transaction, START, statements.start_one(ways), named, SYSTEM):
            start_followers(transaction, [one.id] if one.followed else [], SYSTEM)
    settle_from_rows(transaction, job_id, SYSTEM)


def _change(
    transaction: Transaction,
    transition: Transition,
    job_id: UUID,
    caller: Caller,
    reason: str | None,
    extra: dict[str, Any] | None = None,
) -> Changed:
    """Make the change or say why not: no such job for this caller, or a state that does not allow it."""
    reason = None if reason is None else storable_text(reason)
    statement = statements.change_one(transaction.ways, transition, caller.sight)
    parameters = {"the_job_id": job_id, "the_caller_id": caller.id, "the_reason": reason, **(extra or {})}
    changed = change(transaction, transition, statement, parameters, caller, reason=reason)
    if changed:
        return changed[0]
    row = _seen(transaction, job_id, caller)
    state = JobState(row.state)
    if transition is PAUSE and state in PAUSE.sources:
        raise TransitionRefused(
            f"job {job_id} cannot be paused: others wait for the same work; cancel it instead", code="JOB_SHARED"
        )
    allowed = " or ".join(sorted(source.value for source in transition.sources))
    raise TransitionRefused(f"job {job_id} is {state.value}: {transition.name} is possible only while it is {allowed}")


def _seen(transaction: Transaction, job_id: UUID, caller: Caller) -> Any:
    named = {"the_job_id": job_id, "the_caller_id": caller.id}
    row = transaction.run(statements.state_seen_by(transaction.ways, caller.sight), named).one_or_none()
    if row is None:
        raise not_found(job_id)
    return row
