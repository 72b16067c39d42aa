"""A job in the words of ``/api/jobs``. Pure: no database, no request."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from penstock.http.jobs.schemas import (
    Counts,
    FailedItem,
    FailedTask,
    HistoryLine,
    JobListed,
    JobProgress,
    JobStatusResponse,
    JobTimes,
    WorkerHealth,
)
from penstock.http.system.report import lane_setting
from penstock.lifecycle.job import HistoryEntry, Job
from penstock.lifecycle.job_message import message_of, percent_of
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import Actor, JobState, Phase, Work
from penstock.lifecycle.transitions import actions
from penstock.lifecycle.vocabularies import CELERY, QUEUE_STATE, TASKS
from penstock.operations.job_report import ItemFailure, JobReport, TaskFailure
from penstock.operations.samples import LaneSample
from penstock.operations.workers import WorkerSeen

BATCH = 100
"""How many items are shown as one batch of a long job."""
_KILLED = TASKS.killed
_HANDED_OUT = CELERY.words[JobState.SUCCEEDED]
_KILLED_FIELDS = ("killed_by", "killed_at", "killed_reason", "progress_at_kill")
_FAILED_FIELDS = (
    "error", "error_type", "error_code", "failed_at", "failed_phase", "failed_batch", "progress_at_failure",
    "stack_trace",
)  # fmt: skip


def job_listed(job: Job, now: datetime) -> JobListed:
    """A job in a list."""
    return JobListed(
        job_id=job.id,
        status=status_of(job),
        state=job.state,
        job_type=job.kind,
        title=job.title,
        user_id=job.user_id,
        run=job.run,
        created_at=job.created_at,
        run_at=job.run_at,
        updated_at=job.updated_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
        times=times_of(job, now),
        progress=progress_of(job, now),
        failed_items=job.progress.failed,
        error_code=job.error_code,
        killed_by=job.killed_by,
        celery_status=celery_status(job),
    )


def job_status(
    report: JobReport, now: datetime, *, actor: Actor, policy: Policy | None, lanes: Iterable[LaneSample] = ()
) -> JobStatusResponse:
    """The full report of a job; ``policy`` is its kind's, if known here, and ``lanes`` are those of its kind."""
    job, progress = report.job, report.job.progress
    status = status_of(job)
    is_failed, is_killed = job.state.shown_as is JobState.FAILED, status == _KILLED
    ended_at, counts = _ending(report) if job.state.work is Work.LEFT else (None, None)
    params = job.params if isinstance(job.params, dict) else {}
    result = job.result if isinstance(job.result, dict) else {}
    status_response = JobStatusResponse(
        job_id=job.id,
        status=status,
        state=job.state,
        job_type=job.kind,
        title=job.title,
        user_id=job.user_id,
        run=job.run,
        created_at=job.created_at,
        run_at=job.run_at,
        updated_at=job.updated_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
        times=times_of(job, now),
        progress=progress_of(job, now),
        failed_items=progress.failed,
        error_code=job.error_code,
        killed_by=job.killed_by,
        celery_status=celery_status(job),
        queue_state=QUEUE_STATE.word(job.state, job.killed_by),
        total_items=progress.total,
        processed_items=progress.processed,
        not_found_items=progress.not_found,
        skipped_items=progress.skipped,
        attempts=job.attempts,
        deaths=job.deaths,
        last_heartbeat=job.last_heartbeat,
        last_error=job.last_error,
        file_id=job.file_id,
        mapping=params.get("mapping"),
        actions=list(
            actions(
                job.state,
                actor,
                reprocessable=job.engine is None and policy is not None and policy.reprocess,
                pausable=job.engine is None,
            )
        ),
        has_mailbox=policy is not None and policy.abandon_after is not None,
        expires_at=_expires_at(job, policy),
        result=job.result,
        completed_with_errors=job.state.work is Work.DONE and progress.failed > 0,
        error_details=None if report.failures is None else [_failed_item(failure) for failure in report.failures],
        failed_tasks=None if report.failed_tasks is None else [_failed_task(task) for task in report.failed_tasks],
        continues=params.get("continues"),
        continued_by=result.get("continued_by"),
        error=job.last_error if is_failed else None,
        error_type=job.error_class if is_failed else None,
        failure_type=job.error_type if is_failed else None,
        failed_at=ended_at if is_failed else None,
        failed_phase=job.failed_phase if is_failed else None,
        failed_batch=_failed_batch(job, counts) if is_failed else None,
        progress_at_failure=counts if is_failed else None,
        stack_trace=report.stack_trace,
        killed_at=ended_at if is_killed else None,
        killed_reason=job.killed_reason if is_killed else None,
        progress_at_kill=counts if is_killed else None,
        controllers=[lane_setting(lane) for lane in lanes if lane.kind == job.kind],
    )
    if job.state.work is not Work.DONE:
        status_response.result = result_of(status_response)
    return status_response


def result_of(job: JobStatusResponse) -> dict[str, Any] | None:
    """What stands in the place of a result before there is one: how the job ended, or that its work is handed out.

    It has the same values as the fields of the same names, for clients that look for them here.
    """
    if job.status == _KILLED:
        return {"status": job.status} | {name: getattr(job, name) for name in _KILLED_FIELDS}
    if job.status == TASKS.words[JobState.FAILED]:
        return {"status": job.status} | {name: getattr(job, name) for name in _FAILED_FIELDS}
    if job.celery_status == _HANDED_OUT:
        word = "processing" if job.processed_items else "dispatched"
        return {"status": word, "total_items": job.total_items, "message": job.progress.message}
    return None


def status_of(job: Job) -> str:
    """One of five."""
    return TASKS.word(job.state, job.killed_by)


def celery_status(job: Job) -> str:
    """What Celery would say of a coordinator that does the same: SUCCESS as soon as it has handed out its work."""
    handed_out = job.phase in (Phase.PROCESSING, Phase.FINALIZING) and job.progress.total > 1
    if job.state is JobState.RUNNING and handed_out:
        return _HANDED_OUT
    return CELERY.word(job.state, job.killed_by)


def times_of(job: Job, now: datetime) -> JobTimes:
    """How long a job has taken."""
    times = job.times_at(now)
    return JobTimes(
        total_seconds=round(times.total, 1),
        active_seconds=round(times.active, 1),
        paused_seconds=round(times.paused, 1),
        waiting_seconds=round(times.waiting, 1),
    )


def progress_of(job: Job, now: datetime) -> JobProgress:
    """How far a job is."""
    current, total = job.progress.processed, job.progress.total
    percent = percent_of(job)
    batches_completed, batches_total = _batches(current, total)
    return JobProgress(
        current=current,
        total=total,
        percent=percent,
        message=message_of(job, percent),
        phase=job.phase,
        batches_completed=batches_completed,
        batches_total=batches_total,
        eta_seconds=None if (seconds := job.seconds_left(now)) is None else round(seconds, 1),
    )


def worker_health(workers: Iterable[WorkerSeen]) -> WorkerHealth:
    """Who works just now."""
    alive = [worker for worker in workers if worker.alive]
    return WorkerHealth(
        status="healthy" if alive else "unhealthy",
        workers=len(alive),
        active_tasks=sum(sum(worker.data.get("held", {}).values()) for worker in alive),
        message=f"{len(alive)} worker(s) online" if alive else "No workers available",
    )


def history_line(entry: HistoryEntry) -> HistoryLine:
    """One transition."""
    return HistoryLine(
        sequence=entry.sequence,
        run=entry.run,
        from_state=entry.from_state,
        to_state=entry.to_state,
        actor=entry.actor,
        actor_id=entry.actor_id,
        reason=entry.reason,
        data=entry.data,
        at=entry.at,
    )


def _expires_at(job: Job, policy: Policy | None) -> datetime | None:
    """Until when a result waits for its owner to use it."""
    if policy is None or policy.abandon_after is None or job.state is not JobState.SUCCEEDED:
        return None
    return None if job.completed_at is None else job.completed_at + timedelta(seconds=policy.abandon_after)


def _batches(processed: int, total: int) -> tuple[int | None, int | None]:
    """How many are over, and how many there are. The last one may be a small one: it is over when everything is."""
    if total <= 1:
        return None, None
    batches = -(-total // BATCH)
    return processed // BATCH if processed < total else batches, batches


def _ending(report: JobReport) -> tuple[datetime, Counts]:
    """When it ended, and how far it was then, by the history."""
    job = report.job
    data: dict[str, Any] = report.ending_data if isinstance(report.ending_data, dict) else {}
    processed = int(data.get("processed", job.progress.processed))
    total = int(data.get("total", job.progress.total))
    batches_completed, batches_total = _batches(processed, total)
    counts = Counts(processed=processed, total=total, batches_completed=batches_completed, batches_total=batches_total)
    return report.ended_at or job.updated_at, counts


def _failed_batch(job: Job, counts: Counts | None) -> int | None:
    if job.failed_phase is not Phase.PROCESSING or counts is None:
        return None
    if counts.batches_completed is None or counts.batches_total is None:
        return None
    return min(counts.batches_completed + 1, counts.batches_total)


def _failed_item(failure: ItemFailure) -> FailedItem:
    return FailedItem(
        position=failure.position,
        error=failure.error,
        error_code=failure.error_code,
        attempts=failure.attempts,
        deaths=failure.deaths,
    )


def _failed_task(failure: TaskFailure) -> FailedTask:
    return FailedTask(
        task_id=failure.task_id,
        name=failure.name,
        error=failure.error,
        error_code=failure.error_code,
        worker=failure.worker,
    )
