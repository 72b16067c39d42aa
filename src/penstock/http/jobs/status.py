"""Reading a job's status: by itself, after a change, or with new lines of its history."""

from __future__ import annotations

from uuid import UUID

from penstock.errors import JobNotFound
from penstock.http.jobs.report import job_status
from penstock.http.jobs.schemas import JobStatusResponse
from penstock.http.service import Service
from penstock.http.tokens import Identity
from penstock.lifecycle.job import HistoryEntry, Job
from penstock.lifecycle.states import JobState
from penstock.operations import read_jobs
from penstock.operations.job_report import JobReport, get_report, has_more_to_tell
from penstock.store.transaction import Transaction


def read_status(job_id: UUID, who: Identity, service: Service) -> JobStatusResponse:
    """A job as it stands now, with all that belongs to it."""
    return complete_status(service.app.acting_as(who.caller).jobs.get(job_id), who, service)


def complete_status(job: Job, who: Identity, service: Service) -> JobStatusResponse:
    """The status of a job that was just read or changed; it is read again only if there is more to tell of its end."""
    if not has_more_to_tell(job):
        return _status(JobReport(job), who, service)
    try:
        report = service.app.store.read(
            lambda transaction: get_report(transaction, job.id, who.caller, with_trace=who.admin), single_statement=True
        )
    except JobNotFound:
        service.app.acting_as(who.caller).jobs.get(job.id)  # which says so if it was pruned meanwhile
        raise
    return _status(report, who, service)


def read_news(
    job_id: UUID, who: Identity, service: Service, *, after: int, limit: int
) -> tuple[JobStatusResponse, list[HistoryEntry]]:
    """A job, and the lines of its history behind ``after``; they are read later, so none that led to it is missing."""

    def read(transaction: Transaction) -> tuple[JobReport, list[HistoryEntry]]:
        report = JobReport(read_jobs.get_job(transaction, job_id, who.caller))
        if has_more_to_tell(report.job):
            report = get_report(transaction, job_id, who.caller, with_trace=who.admin)
        return report, read_jobs.history(transaction, job_id, after=after, limit=limit)

    report, lines = service.app.store.read(read)
    return _status(report, who, service), lines


def _status(report: JobReport, who: Identity, service: Service) -> JobStatusResponse:
    job, kinds = report.job, service.app.kinds
    policy = kinds.get(job.kind).policy if job.kind in kinds else None
    lanes = service.stats.lanes.get().value if job.state is JobState.RUNNING else ()
    now = service.app.store.current_time()
    return job_status(report, now, actor=who.caller.actor, policy=policy, lanes=lanes)
