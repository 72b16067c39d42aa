"""All that is told of one job, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import Job
from penstock.lifecycle.payloads import JSON
from penstock.operations.read_jobs import not_found
from penstock.store.engine import Transaction
from penstock.store.queries.job_report import read_job_report
from penstock.store.rows import job_from

FAILURES = 100
"""So many failed items are named."""


class ItemFailure(NamedTuple):
    """An item that ended in an error."""

    position: int
    error: str | None
    error_code: str | None
    attempts: int
    deaths: int


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, and what belongs to its end."""

    job: Job
    ended_at: datetime | None
    """When it failed or was canceled."""
    ending_data: JSON
    """What its history says of that moment."""
    failures: list[ItemFailure] | None
    """The first failed items of a job that is over; None where there are none."""
    stack_trace: str | None


def get_report(transaction: Transaction, job_id: UUID, caller: Caller, *, with_trace: bool) -> JobReport:
    """A job as it stands now, in one statement; ``with_trace`` also says where in its code it failed last."""
    row = read_job_report(
        transaction,
        job_id,
        visibility=caller.sight,
        caller_id=caller.id,
        failures=FAILURES,
        with_trace=with_trace,
    )
    if row is None:
        raise not_found(job_id)
    failures = None if row.failures is None else sorted(ItemFailure(*failure) for failure in row.failures)
    return JobReport(job_from(row), row.ended_at, row.ending_data, failures, row.stack_trace)
