"""The report of one job, read at one moment.

Nearly always that is what the job's own row says: one statement, and a cheap one. Where there is more to tell of its
end (why it failed, which items did), the job is read once more together with that, again in one statement: what is told
is never put together from two moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple
from uuid import UUID

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import Job
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import Work
from penstock.operations.read_jobs import get_job, look_at_job, not_found
from penstock.store.engine import Store
from penstock.store.queries.job_report import read_job_report
from penstock.store.rows import job_from
from penstock.store.transaction import Transaction

FAILURES = 100
"""So many failed items, or tasks, are named."""


class ItemFailure(NamedTuple):
    """An item that ended in an error."""

    position: int
    error: str | None
    error_code: str | None
    attempts: int
    deaths: int


class TaskFailure(NamedTuple):
    """A task of a job that another engine moves, which failed or was revoked."""

    task_id: str
    name: str | None
    error: str | None
    error_code: str | None
    worker: str | None


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, and what belongs to its end."""

    job: Job
    ended_at: datetime | None = None
    """When it failed or was canceled."""
    ending_data: JSON = None
    """What its history says of that moment."""
    failures: list[ItemFailure] | None = None
    """The first failed items of a job that is over; None where there are none."""
    failed_tasks: list[TaskFailure] | None = None
    """The first failed tasks of one that another engine moves, in the order in which that was heard."""
    stack_trace: str | None = None


def has_more_to_tell(job: Job) -> bool:
    """Is there more to report about its end than its row has?"""
    return job.state.work is Work.LEFT or (job.finished and job.progress.failed > 0)


def read_report(store: Store, job_id: UUID, caller: Caller, *, with_trace: bool, job: Job | None = None) -> JobReport:
    """A job as it stands now, with what belongs to its end; ``job`` is what was just read, or changed."""
    if job is None:
        job = look_at_job(store, job_id, caller, partial(get_job, job_id=job_id, caller=caller))
    if not has_more_to_tell(job):
        return JobReport(job)
    question = partial(get_report, job_id=job_id, caller=caller, with_trace=with_trace)
    return look_at_job(store, job_id, caller, question)


def get_report(transaction: Transaction, job_id: UUID, caller: Caller, *, with_trace: bool) -> JobReport:
    """A job with what belongs to its end, in one statement; ``with_trace`` also says where in its code it failed."""
    report_rows = read_job_report(transaction, job_id, caller, failures=FAILURES, with_trace=with_trace)
    if report_rows is None:
        raise not_found(transaction, job_id, caller)
    row, ending = report_rows
    failures = sorted(ItemFailure(*failure) for failure in ending.failures or ())
    failed_tasks = [TaskFailure(*failure) for failure in ending.failed_tasks or ()]
    return JobReport(
        job_from(row), ending.ended_at, ending.ending_data, failures or None, failed_tasks or None, ending.stack_trace
    )
