"""A job in the words of ``/api/jobs``. Pure: no database, no request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from penstock.lifecycle.job import HistoryEntry, Item, Job
from penstock.lifecycle.states import JobState, KilledBy, Phase
from penstock.lifecycle.vocabularies import VOCABULARIES

BATCH = 100
"""Items people think of as one step of a long job."""

_WORDS = VOCABULARIES["tasks"]
_OVER_BADLY = (JobState.FAILED, JobState.CANCELED)
_CELERY = {
    JobState.CREATED: "PENDING",
    JobState.QUEUED: "PENDING",
    JobState.RUNNING: "STARTED",
    JobState.RETRYING: "RETRY",
    JobState.PAUSED: "PENDING",
    JobState.SUCCEEDED: "SUCCESS",
    JobState.FAILED: "FAILURE",
    JobState.CANCELED: "REVOKED",
    JobState.COMMITTED: "SUCCESS",
    JobState.ABANDONED: "SUCCESS",
}


def listed(job: Job, now: datetime) -> dict[str, Any]:
    """A job in a list."""
    return {
        "job_id": str(job.id),
        "status": status_of(job),
        "state": job.state.value,
        "job_type": job.kind,
        "title": job.title,
        "user_id": job.user_id,
        "run": job.run,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        "started_at": job.started_at,
        "completed_at": job.completed_at,
        "progress": progress_of(job, now),
        "error_code": job.error_code,
        "killed_by": _value(job.killed_by),
        "celery_status": celery_status(job),
    }


def shown(
    job: Job,
    now: datetime,
    *,
    offered: Sequence[str] = (),
    ending: HistoryEntry | None = None,
    failed_items: Sequence[Item] | None = None,
    stack_trace: str | None = None,
) -> dict[str, Any]:
    """A whole job; ``ending`` is the line of history that says how one failed or was stopped."""
    status = status_of(job)
    told = job.result if isinstance(job.result, dict) else {}
    params = job.params if isinstance(job.params, dict) else {}
    answer = {
        **listed(job, now),
        "actions": list(offered),
        "result": job.result,
        "completed_with_errors": status == "completed" and job.progress.failed > 0,
        "error_details": None if failed_items is None else [_failed(one) for one in failed_items],
        "continues": params.get("continues"),
        "continued_by": told.get("continued_by"),
        "error": None,
        "error_type": None,
        "failed_at": None,
        "failed_phase": None,
        "failed_batch": None,
        "progress_at_failure": None,
        "stack_trace": stack_trace,
        "killed_at": None,
        "killed_reason": None,
        "progress_at_kill": None,
    }
    if job.state in _OVER_BADLY:
        at = ending.at if ending is not None else job.updated_at
        counts = _counts(job, ending)
        if status == "killed":
            answer |= {"killed_at": at, "killed_reason": job.killed_reason, "progress_at_kill": counts}
        if job.state is JobState.FAILED:
            answer |= _failure(job, at, counts)
    return answer


def status_of(job: Job) -> str:
    """One of five."""
    return _WORDS.word(job.state, job.killed_by)


def celery_status(job: Job) -> str:
    """What Celery would say of a coordinator that does the same: SUCCESS as soon as it has handed out its work."""
    handed_out = job.phase in (Phase.PROCESSING, Phase.FINALIZING) and job.progress.total > 1
    if job.state is JobState.RUNNING and handed_out:
        return "SUCCESS"
    return _CELERY[job.state]


def progress_of(job: Job, now: datetime) -> dict[str, Any]:
    """How far a job is."""
    current, total = job.progress.processed, job.progress.total
    # Rounded down: what is shown as 100 is over.
    percent = int(job.progress.fraction(job.state) * 1000) / 10
    return {
        "current": current,
        "total": total,
        "percent": percent,
        "message": job.message or _message(job, percent),
        "phase": job.phase.value,
        **_in_batches(current, total),
        "failed": job.progress.failed,
        "eta_seconds": _eta(job, now),
    }


def history_line(entry: HistoryEntry) -> dict[str, Any]:
    """One transition."""
    return {
        "sequence": entry.sequence,
        "run": entry.run,
        "from_state": _value(entry.from_state),
        "to_state": entry.to_state.value,
        "actor": entry.actor.value,
        "actor_id": entry.actor_id,
        "reason": entry.reason,
        "data": entry.data,
        "at": entry.at,
    }


def _message(job: Job, percent: float) -> str:
    match status_of(job):
        case "queued":
            return "Paused" if job.state is JobState.PAUSED else "Waiting to start..."
        case "running":
            return f"Processing... {percent:g}%"
        case "completed":
            return "Completed successfully" if not job.progress.failed else "Completed with errors"
        case "failed":
            return f"Failed: {job.last_error}"
        case _:
            return f"Cancelled by {_value(job.killed_by) or 'system'}"


def _eta(job: Job, now: datetime) -> float | None:
    if job.state is not JobState.RUNNING or job.started_at is None or not job.progress.processed:
        return None
    elapsed = max((now - job.started_at).total_seconds(), 0.0)
    return round(elapsed / job.progress.processed * (job.progress.total - job.progress.processed), 1)


def _in_batches(processed: int, total: int) -> dict[str, int | None]:
    """The last batch may be a small one: it is over when everything is."""
    if total <= 1:
        return {"batches_completed": None, "batches_total": None}
    batches = -(-total // BATCH)
    return {"batches_completed": processed // BATCH if processed < total else batches, "batches_total": batches}


def _counts(job: Job, ending: HistoryEntry | None) -> dict[str, Any]:
    """How far it was when it ended: what the history remembers of that moment."""
    told = ending.data if ending is not None and isinstance(ending.data, dict) else {}
    processed = int(told.get("processed", job.progress.processed))
    total = int(told.get("total", job.progress.total))
    return {"processed": processed, "total": total, **_in_batches(processed, total)}


def _failure(job: Job, at: datetime, counts: dict[str, Any]) -> dict[str, Any]:
    in_batches = job.failed_phase is Phase.PROCESSING and counts["batches_completed"] is not None
    return {
        "error": job.last_error,
        "error_type": _value(job.error_type),
        "failed_at": at,
        "failed_phase": _value(job.failed_phase),
        "failed_batch": min(counts["batches_completed"] + 1, counts["batches_total"]) if in_batches else None,
        "progress_at_failure": counts,
    }


def _failed(item: Item) -> dict[str, Any]:
    return {
        "position": item.position,
        "error": item.last_error,
        "error_code": item.error_code,
        "attempts": item.attempts,
        "deaths": item.deaths,
    }


def _value(word: JobState | KilledBy | Phase | Any | None) -> str | None:
    return None if word is None else word.value
