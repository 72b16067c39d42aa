"""One sentence on how a job stands, for people: the same in the API, on the pages and in lists."""

from __future__ import annotations

from penstock.lifecycle.job import Job
from penstock.lifecycle.states import JobState, Phase, Work


def percent_of(job: Job) -> float:
    """How far a job is, from 0 to 100; rounded down, so that what is shown as 100 is over."""
    return int(job.fraction * 1000) / 10


def message_of(job: Job, percent: float) -> str:
    """How it stands: in its handler's own words while it runs, else in ours."""
    state = job.state.shown_as
    if state is JobState.CANCELED or (state is JobState.FAILED and job.killed_by is not None):
        return f"Canceled by {'system' if job.killed_by is None else job.killed_by.value.replace('_', ' ')}"
    if state is JobState.FAILED:
        return f"Failed: {job.last_error or job.error_code or 'unknown error'}"
    if state.work is Work.DONE:
        return f"Completed, {job.progress.failed:,} failed" if job.progress.failed else "Completed successfully"
    if state is JobState.PAUSED:
        return f"Paused at {percent:g}%"
    if state in (JobState.RUNNING, JobState.RETRYING):
        if job.phase is Phase.BATCHING and job.progress.total:
            return job.message or f"Taking in... {job.progress.total:,} items so far"
        return job.message or f"Processing... {percent:g}%"
    if state is JobState.CREATED and job.run_at is not None:
        return f"Waiting until {job.run_at:%Y-%m-%d %H:%M} UTC"
    return "Waiting to start..."
