"""A job in the words of ``/api/jobs``. Pure: no database, no request."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from penstock.http.jobs.schemas import Counts, FailedItem, HistoryLine, JobListed, JobProgress, JobStatusResponse
from penstock.http.system.report import lane_setting
from penstock.lifecycle.job import HistoryEntry, Job
from penstock.lifecycle.job_message import message_of, percent_of
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import Actor, JobState, Phase, Work
from penstock.lifecycle.transitions import actions
from penstock.lifecycle.vocabularies import CELERY, QUEUE_STATE, TASKS
from penstock.operations.job_report import ItemFailure, JobReport
from penstock.operations.samples import LaneSample

BATCH = 100
"""How many items are shown as one batch of a long job."""
_KILLED = TASKS.killed


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
        updated_at=job.updated_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
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
    return JobStatusResponse(
        job_id=job.id,
        status=status,
        state=job.state,
        job_type=job.kind,
        title=job.title,
        user_id=job.user_id,
        run=job.run,
        created_at=job.created_at,
        updated_at=job.updated_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
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
        actions=list(actions(job.state, actor, reprocessable=policy is not None and policy.reprocess)),
        has_mailbox=policy is not None and policy.abandon_after is not None,
        expires_at=_expires_at(job, policy),
        result=job.result,
        completed_with_errors=job.state.work is Work.DONE and progress.failed > 0,
        error_details=None if report.failures is None else [_failed_item(failure) for failure in report.failures],
        continues=params.get("continues"),
        continued_by=result.get("continued_by"),
        error=job.last_error if is_failed else None,
        error_type=job.error_type if is_failed else None,
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


def status_of(job: Job) -> str:
    """One of five."""
    return TASKS.word(job.state, job.killed_by)


def celery_status(job: Job) -> str:
    """What Celery would say of a coordinator that does the same: SUCCESS as soon as it has handed out its work."""
    handed_out = job.phase in (Phase.PROCESSING, Phase.FINALIZING) and job.progress.total > 1
    if job.state is JobState.RUNNING and handed_out:
        return "SUCCESS"
    return CELERY.words[job.state]


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
        eta_seconds=_eta(job, now),
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


def _eta(job: Job, now: datetime) -> float | None:
    if job.state is not JobState.RUNNING or job.started_at is None or not job.progress.processed:
        return None
    elapsed = max((now - job.started_at).total_seconds(), 0.0)
    return round(elapsed / job.progress.processed * (job.progress.total - job.progress.processed), 1)


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
