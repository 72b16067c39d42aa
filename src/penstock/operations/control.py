"""What people do to a job: pause, resume, cancel, commit, abandon. Each is O(1), however many items the job has."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from penstock.errors import PenstockError, TransitionRefused
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import HistoryEntry, Job
from penstock.lifecycle.payloads import storable_text
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transitions import ABANDON, CANCEL, COMMIT, PAUSE, RESUME, START, Transition
from penstock.operations.read_jobs import get_job, last_change_to, not_found
from penstock.operations.settle import settle_from_rows
from penstock.operations.single_flight import hand_over, join, start_followers
from penstock.store.job_changes import change, jobs_with_followers
from penstock.store.queries import control as queries
from penstock.store.queries.change_state import ChangedJob
from penstock.store.queries.control import LockedJob
from penstock.store.queries.unique_keys import leading_job
from penstock.store.transaction import Transaction

_TRIES = 10
_LONGEST_REASON = 200


def pause(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """PAUSE: claimed items finish, no new ones start."""
    _change(transaction, PAUSE, job_id, caller, reason)
    return get_job(transaction, job_id, caller)


def resume(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """RESUME: items are claimed again; a job whose work ended while it was paused ends now."""
    if let_flow(transaction, RESUME, job_id, caller, reason):
        reschedule(transaction, job_id)
    return get_job(transaction, job_id, caller)


def cancel(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """CANCEL: stopped for good. Jobs that follow it still get their result."""
    changed_job = _change(transaction, CANCEL, job_id, caller, reason)
    transaction.stop(job_id)
    if changed_job.has_followers:
        successor = hand_over(transaction, job_id)
        if successor is not None:
            reschedule(transaction, successor)
    return get_job(transaction, job_id, caller)


def commit(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """COMMIT: the owner used the result."""
    _change(transaction, COMMIT, job_id, caller, reason)
    return get_job(transaction, job_id, caller)


def abandon(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None = None) -> Job:
    """ABANDON: the owner does not want the result."""
    _change(transaction, ABANDON, job_id, caller, reason)
    return get_job(transaction, job_id, caller)


def reschedule(transaction: Transaction, job_id: UUID) -> None:
    """Put a running job where its items' rows say it is: hand out, wait for the last ones, finalize or end."""
    job = queries.restore_turn(transaction, job_id)
    if job is None:
        return
    if job.next_claim_at is not None:
        transaction.wake(job.kind)
        return
    if job.state == JobState.QUEUED:
        started_jobs = change(transaction, START, partial(queries.start_handed_out, job_id=job_id), SYSTEM)
        start_followers(transaction, jobs_with_followers(started_jobs), SYSTEM)
    settle_from_rows(transaction, job_id, SYSTEM)


def let_flow(
    transaction: Transaction, transition: Transition, job_id: UUID, caller: Caller, reason: str | None = None
) -> bool:
    """SUBMIT or RESUME; the answer is whether the job does its work itself, and does not follow the one that does.

    While another job leads its key, a job that has never started follows that one. One that has is refused.
    """
    if _try(transaction, transition, job_id, caller, reason):
        return True
    job = _lock(transaction, job_id, caller)
    if JobState(job.state) not in transition.sources:
        raise _refusal(transaction, transition, job_id, job)
    for _ in range(_TRIES):
        # Nobody else changes it now; but whoever led its key may have ended meanwhile.
        if _try(transaction, transition, job_id, caller, reason):
            return True
        if job.started_at is not None:
            raise TransitionRefused(
                f"job {job_id} cannot go on while another {job.kind!r} job of key {job.unique_key!r} is active; "
                "wait for that one, or cancel this one and submit again to share the other's result",
                code="UNIQUE_KEY_IN_USE",
            )
        if _follow(transaction, transition, job, job_id, caller, reason):
            return False
    raise PenstockError(f"other jobs took over the work of job {job_id} {_TRIES} times; try again", code="BUSY")


def _follow(
    transaction: Transaction, transition: Transition, job: LockedJob, job_id: UUID, caller: Caller, reason: str | None
) -> bool:
    """Let a job that has never started follow the one that leads its key; False when none does."""
    leader = None if job.unique_key is None else leading_job(transaction, job.kind, job.unique_key)
    if leader is None:
        return False
    follow = partial(queries.follow_instead, transition=transition, job_id=job_id, caller=caller, leader_id=leader.id)
    change(transaction, transition, follow, caller, reason=reason)
    queries.drop_items(transaction, job_id)
    join(transaction, job_id, leader.id, leader.state)
    return True


def _change(
    transaction: Transaction, transition: Transition, job_id: UUID, caller: Caller, reason: str | None
) -> ChangedJob:
    """Make the change or say why not: no such job for this caller, or a state that does not allow it."""
    changed_job = _try(transaction, transition, job_id, caller, reason)
    if changed_job is None:
        # What refused it may be gone by now. With the job locked, what is found is also the reason.
        job = _lock(transaction, job_id, caller)
        if JobState(job.state) in transition.sources:
            changed_job = _try(transaction, transition, job_id, caller, reason, is_locked=True)
        if changed_job is None:
            raise _refusal(transaction, transition, job_id, job)
    return changed_job


def _try(
    transaction: Transaction,
    transition: Transition,
    job_id: UUID,
    caller: Caller,
    reason: str | None,
    *,
    is_locked: bool = False,
) -> ChangedJob | None:
    reason = None if reason is None else storable_text(reason)
    change_job = partial(
        queries.change_job, transition=transition, job_id=job_id, caller=caller, reason=reason, is_locked=is_locked
    )
    changed_jobs = change(transaction, transition, change_job, caller, reason=reason)
    return changed_jobs[0] if changed_jobs else None


def _lock(transaction: Transaction, job_id: UUID, caller: Caller) -> LockedJob:
    job = queries.lock_job(transaction, job_id, caller)
    if job is None:
        raise not_found(transaction, job_id, caller)
    return job


def require_ours(job: Job, consequence: str) -> None:
    """Refuse what only our own workers can do, for a job that another engine moves."""
    if job.engine is not None:
        raise _moved_elsewhere(job.id, job.engine, consequence)


def _moved_elsewhere(job_id: UUID, engine: str, consequence: str) -> TransitionRefused:
    return TransitionRefused(
        f"job {job_id} is moved by {engine}, not by our workers: {consequence}", code="JOB_TRACKED"
    )


def _refusal(transaction: Transaction, transition: Transition, job_id: UUID, job: LockedJob) -> TransitionRefused:
    """Why this job, which is locked, cannot be changed."""
    state = JobState(job.state)
    if transition is PAUSE and state in PAUSE.sources:
        if job.engine is not None:
            return _moved_elsewhere(job_id, job.engine, "it cannot be paused; cancel it instead")
        why = "others wait for the same work" if job.leader_id is None else "another job does its work"
        return TransitionRefused(f"job {job_id} cannot be paused: {why}; cancel it instead", code="JOB_SHARED")
    sources = " or ".join(sorted(source.value for source in transition.sources))
    so_it_is = f"job {job_id} is {state.value}"
    if state is transition.target:
        so_it_is += f" already{_by_whom(last_change_to(transaction, job_id, state))}"
    return TransitionRefused(f"{so_it_is}: {transition.name} is possible only while it is {sources}")


def _by_whom(entry: HistoryEntry | None) -> str:
    """Who did it, and why."""
    if entry is None:
        return ""
    who = f"{entry.actor.value} {entry.actor_id}" if entry.actor_id else entry.actor.value
    return f", by {who}" + (f" ({storable_text(entry.reason)[:_LONGEST_REASON]})" if entry.reason else "")
