"""Changing states: the guarded update and its history row, together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.states import JobState
from penstock.lifecycle.transitions import Transition
from penstock.store.queries.change_state import (
    ChangedJob,
    Event,
    ExplainedEvent,
    insert_events,
    insert_explained_events,
)
from penstock.store.transaction import Transaction


def change(
    transaction: Transaction,
    transition: Transition,
    query: Callable[[Transaction], list[ChangedJob]],
    caller: Caller,
    *,
    reason: str | None = None,
    reasons: Mapping[UUID, str | None] | None = None,
) -> list[ChangedJob]:
    """Run the guarded update that makes ``transition``, if the caller may, and write the history of what it changed.

    The answer is the jobs that changed; each has its own reason in ``reasons``, or all have the same.
    """
    if caller.actor not in transition.who:
        raise TransitionRefused(f"{caller.actor.value} may not {transition.name} a job", code="NOT_ALLOWED")
    changed_jobs = query(transaction)
    if not changed_jobs:
        return changed_jobs
    if reason is not None or reasons is not None or transition.keeps_progress:
        explained_events = _explain_events(
            changed_jobs, reasons or {}, reason, keeps_progress=transition.keeps_progress
        )
        insert_explained_events(transaction, explained_events, to_state=transition.target, caller=caller)
    else:
        events = [Event(job.id, job.event_sequence, job.run, job.previous_state) for job in changed_jobs]
        insert_events(transaction, events, to_state=transition.target, caller=caller)
    first = changed_jobs[0]
    reason = reason if reasons is None else reasons.get(first.id)
    log_change(transaction, transition, [job.id for job in changed_jobs], first.kind, caller, reason=reason)
    return changed_jobs


def log_change(
    transaction: Transaction,
    transition: Transition,
    job_ids: Sequence[UUID],
    kind: str,
    caller: Caller,
    *,
    reason: str | None = None,
) -> None:
    """One line of the log for jobs that were changed together: a worker starts and ends thousands a second."""
    if job_ids:
        transaction.log(
            f"{transition.name}: {transition.target.value}",
            level="error" if transition.target is JobState.FAILED else "info",
            jobs=len(job_ids),
            first=str(job_ids[0]),
            kind=kind,
            by=caller.id or caller.actor.value,
            reason=reason,
        )


def jobs_with_followers(changed_jobs: Iterable[ChangedJob]) -> list[UUID]:
    """The jobs that have followers: what happened to them happens to their followers."""
    return [job.id for job in changed_jobs if job.has_followers]


def _explain_events(
    changed_jobs: Sequence[ChangedJob], reasons: Mapping[UUID, str | None], reason: str | None, *, keeps_progress: bool
) -> list[ExplainedEvent]:
    return [
        ExplainedEvent(
            job.id,
            job.event_sequence,
            job.run,
            job.previous_state,
            reasons.get(job.id, reason),
            _progress(job) if keeps_progress else None,
        )
        for job in changed_jobs
    ]


def _progress(job: ChangedJob) -> str:
    """How far the job was when it happened, as JSON."""
    return f'{{"processed":{job.processed_items},"total":{job.total_items}}}'
