"""Reading a job's status: by itself, after a change, or with new lines of its history."""

from __future__ import annotations

from uuid import UUID

from penstock.http.jobs.report import job_status
from penstock.http.jobs.schemas import JobStatusResponse
from penstock.http.service import Service
from penstock.http.tokens import Identity
from penstock.lifecycle.job import HistoryEntry, Job
from penstock.lifecycle.states import JobState
from penstock.operations import read_jobs
from penstock.operations.job_report import JobReport, get_report, has_more_to_tell, read_report
from penstock.store.transaction import Transaction


def status_after_change(job: Job, who: Identity, service: Service) -> JobStatusResponse:
    """The status of a job that was just changed."""
    report = read_report(service.app.store, job.id, who.caller, with_trace=who.admin, job=job)
    return status_of_report(report, who, service)


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
    return status_of_report(report, who, service), lines


def status_of_report(report: JobReport, who: Identity, service: Service) -> JobStatusResponse:
    """A report of a job in the words of the API, for whoever asks."""
    job, kinds = report.job, service.app.kinds
    policy = kinds.get(job.kind).policy if job.kind in kinds else None
    lanes = service.stats.lanes.get().value if job.state is JobState.RUNNING else ()
    now = service.app.store.current_time()
    return job_status(report, now, actor=who.caller.actor, policy=policy, lanes=lanes)
