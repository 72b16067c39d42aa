"""Jobs that another engine moves: recorded when their first task is sent, and settled by what is heard of their tasks.

What is heard of several tasks is written in one transaction, in three steps whose order matters: the tasks are written,
the jobs they belong to are locked, and only then are each job's tasks counted. Of two processes that write the ends of
a job's last two tasks at the same moment, the one that gets the lock second sees both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from uuid import UUID

from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.decisions import Fail, Nothing, Succeed
from penstock.lifecycle.payloads import JSON, encode
from penstock.lifecycle.states import ErrorType, JobState, Phase, TrackingEngine
from penstock.lifecycle.tracked_tasks import (
    FailurePolicy,
    Missing,
    TaskSighting,
    TaskTally,
    next_step_of_tasks,
)
from penstock.lifecycle.transitions import FAIL, START, SUCCEED
from penstock.operations.request import Request
from penstock.operations.settle import value_of
from penstock.store.job_changes import change
from penstock.store.queries import settle as settle_queries
from penstock.store.queries import submit as submit_queries
from penstock.store.queries import tracked_tasks as queries
from penstock.store.queries.control import start_handed_out
from penstock.store.queries.settle import FailedJob, JobCounts, SucceededJob
from penstock.store.queries.submit import CommonColumns, NewJob
from penstock.store.queries.tracked_tasks import HeardTask, QuietTask, TrackedJob, WaitingJob
from penstock.store.transaction import Transaction

_MAX_DECIDING = 10_000
_ACTIVE = (JobState.QUEUED, JobState.RUNNING)


def record_tracked_job(
    transaction: Transaction,
    engine: TrackingEngine,
    kind: str,
    job_id: UUID,
    sightings: Sequence[TaskSighting],
    params: JSON,
    request: Request,
    *,
    max_bytes: int,
) -> bool:
    """Record a job, which waits, with the tasks it begins with; False when there is one of that id already."""
    new = NewJob(job_id, encode(params, max_bytes=max_bytes, at="params"))
    common = CommonColumns(
        kind=kind,
        user_id=request.owner,
        state=JobState.QUEUED.value,
        priority=0,
        unique_key=None,
        leader_id=None,
        single_step=False,
        planned=True,
        has_finalizer=False,
        total_items=0,
        last_claimed=0,
        last_claimable=0,
        max_retries=0,
        file_id=None,
        ip_address=None,
        title=request.kept_title,
    )
    is_new = submit_queries.insert_job_unless_taken(transaction, new, common) is not None
    if is_new:
        submit_queries.insert_beginnings(transaction, new, common, None, request.caller)
        queries.mark_engine(transaction, job_id, engine)
    _write(transaction, sightings)
    return is_new


def record_sightings(transaction: Transaction, sightings: Sequence[TaskSighting], policy: FailurePolicy) -> None:
    """Write what was heard of tasks, and let each of their jobs become what follows: START, SUCCEED or FAIL."""
    _write(transaction, sightings)
    settle_tracked(transaction, {sighting.job_id for sighting in sightings}, policy)


def settle_tracked(
    transaction: Transaction, job_ids: Iterable[UUID], policy: FailurePolicy, *, is_overdue: bool = False
) -> None:
    """Let jobs become what their tasks say; ``is_overdue`` where nothing was heard of them for long enough."""
    for job in queries.lock_tracked_jobs(transaction, sorted(job_ids)):
        tally = TaskTally.of(queries.count_tasks(transaction, job.id))
        if job.state in _ACTIVE:
            _settle(transaction, job, tally, policy, is_overdue=is_overdue)
        else:
            _count(transaction, job, tally, None)


def _write(transaction: Transaction, sightings: Iterable[TaskSighting]) -> None:
    """Each task once, in the order of their keys: two that write the same ones do not wait for each other."""
    by_key: dict[tuple[UUID, str], TaskSighting] = {}
    for sighting in sightings:
        key = (sighting.job_id, sighting.task_id)
        by_key[key] = sighting.merge(by_key[key]) if key in by_key else sighting
    if by_key:
        queries.upsert_tasks(transaction, [_row(by_key[key]) for key in sorted(by_key)])


def _row(sighting: TaskSighting) -> HeardTask:
    return HeardTask(
        job_id=sighting.job_id,
        task_id=sighting.task_id,
        name=sighting.name,
        version=sighting.version,
        status=sighting.status.value,
        leads_to=sighting.leads_to,
        is_root=sighting.is_root,
        is_awaited=sighting.is_awaited,
        is_counted=sighting.is_counted,
        acks_late=sighting.acks_late,
        worker=sighting.worker,
        error=sighting.error,
        error_code=sighting.error_code,
        error_class=sighting.error_class,
        killed_by=value_of(sighting.killed_by),
        result=sighting.result,
    )


def _settle(
    transaction: Transaction, job: TrackedJob, tally: TaskTally, policy: FailurePolicy, *, is_overdue: bool
) -> None:
    """START when a task has started; SUCCEED or FAIL when none is open any more."""
    deciding, first_failure = [], None
    if not tally.open:
        deciding = queries.deciding_tasks(transaction, job.id, limit=_MAX_DECIDING)
        first_failure = queries.first_failed_task(transaction, job.id) if tally.failed else None
    following = next_step_of_tasks(tally, deciding, first_failure, policy, is_overdue=is_overdue)
    if job.state == JobState.QUEUED and (tally.has_begun or isinstance(following, Succeed)):
        change(transaction, START, partial(start_handed_out, job_id=job.id), SYSTEM)
    match following:
        case Nothing():
            _count(transaction, job, tally, None)
        case Missing():
            _count(transaction, job, tally, following.message)
        case Succeed():
            _raise_total(transaction, job, tally, Phase.FINALIZING, None)
            succeeded = [SucceededJob(*_new_counts(job, tally), following.result)]
            change(transaction, SUCCEED, partial(settle_queries.succeed_jobs, succeeded=succeeded), SYSTEM)
        case Fail():
            _raise_total(transaction, job, tally, following.phase, None)
            _fail(transaction, job, tally, following)


def _fail(transaction: Transaction, job: TrackedJob, tally: TaskTally, following: Fail) -> None:
    """FAIL, as the task that decides it did."""
    outcome = following.outcome
    failed = FailedJob(
        *_new_counts(job, tally),
        outcome.error,
        outcome.code,
        value_of(outcome.error_type or ErrorType.TERMINAL),
        outcome.error_class,
        following.phase.value,
        value_of(outcome.killed_by),
    )
    fail = partial(settle_queries.fail_jobs, failed=[failed])
    change(transaction, FAIL, fail, SYSTEM, reasons={job.id: outcome.error})


def _count(transaction: Transaction, job: TrackedJob, tally: TaskTally, message: str | None) -> None:
    _raise_total(transaction, job, tally, tally.phase, message)
    settle_queries.count_outcomes(transaction, [JobCounts(*_new_counts(job, tally), None)])


def _raise_total(
    transaction: Transaction, job: TrackedJob, tally: TaskTally, phase: Phase, message: str | None
) -> None:
    if (tally.total, phase.value, message) != (job.total_items, job.phase, job.message):
        queries.show_progress(transaction, job.id, total=tally.total, phase=phase, message=message)


def _new_counts(job: TrackedJob, tally: TaskTally) -> tuple[UUID, int, int, int, int, int]:
    """By how much the job's figures change: the tasks themselves are counted, not what was heard."""
    return (
        job.id,
        tally.processed - job.processed_items,
        tally.failed - job.failed_items,
        0,
        tally.skipped - job.skipped_items,
        0,
    )


# What is asked about when nothing is heard ----------------------------------------------------------------------------


def take_quiet_tasks(
    transaction: Transaction, *, seconds: float, limit: int, worker: str | None = None
) -> list[QuietTask]:
    """Open tasks of which nothing was heard for so long, and that nobody has asked about meanwhile.

    With a ``worker``, those in its hands.
    """
    return queries.take_quiet_tasks(transaction, seconds=seconds, limit=limit, worker=worker)


def count_in_hands(transaction: Transaction, worker: str) -> int:
    """How many tasks a worker has started, and nobody has heard the end of."""
    return queries.count_in_hands(transaction, worker)


def quiet_jobs(transaction: Transaction, engine: TrackingEngine, *, seconds: float, limit: int) -> list[WaitingJob]:
    """Jobs of which nothing was heard for so long."""
    return queries.quiet_jobs(transaction, engine, seconds=seconds, limit=limit)


def stopped_jobs(transaction: Transaction, *, seconds: float, limit: int) -> list[UUID]:
    """Jobs that ended early within so many seconds, while tasks of theirs were on their way."""
    return queries.stopped_jobs(transaction, seconds=seconds, limit=limit)
