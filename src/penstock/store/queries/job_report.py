"""A job with what belongs to its end, in one statement: one look, so that all of it is of the same moment."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Integer, Select, and_, bindparam, case, null, or_, select, type_coerce

from penstock.lifecycle.callers import Caller, Visibility
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import FINISHED, ItemRole, ItemStatus, JobState, Work
from penstock.lifecycle.tracked_tasks import BAD_ENDS
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.read_jobs import job_columns, last_traceback
from penstock.store.queries.visibility import by_id, visible_to
from penstock.store.rows import JobRow
from penstock.store.tables import job_events, job_items, job_tasks, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, Moment, Payload

_FINISHED_STATES = [state.value for state in JobState if state in FINISHED]
_BADLY_ENDED = [state.value for state in JobState if state.work is Work.LEFT]


class JobEndingRow(NamedTuple):
    """What is known of a job's end beside its own row."""

    ended_at: datetime | None
    ending_data: JSON
    failures: list[tuple[int, str | None, str | None, int, int]] | None
    """Position, error, error code, attempts and deaths of the first failed items."""
    failed_tasks: list[tuple[str, str | None, str | None, str | None, str | None]] | None
    """Id, name, error, error code and worker of the first failed tasks of a job that another engine moves."""
    stack_trace: str | None


def read_job_report(
    transaction: Transaction, job_id: UUID, caller: Caller, *, failures: int, with_trace: bool
) -> tuple[JobRow, JobEndingRow] | None:
    """A job, if the caller may see it, with how it ended, its first failed items or tasks, and where it failed.

    What belongs to an end is looked for only in a job that has one.
    """
    statement = _read_job_report(transaction.dialect, caller.sight, with_trace=with_trace)
    parameters = {"job_id": job_id, "caller_id": caller.id, "failures": failures}
    rows = transaction.rows(statement, parameters)
    if not rows:
        return None
    [values] = rows
    width = len(JobRow._fields)
    return JobRow._make(values[:width]), JobEndingRow._make(values[width:])


@built_once
def _read_job_report(dialect: Dialect, visibility: Visibility, *, with_trace: bool) -> Select[Any]:
    failed_at_all = and_(jobs.c.state.in_(_FINISHED_STATES), jobs.c.failed_items > 0)
    ends_badly = jobs.c.state.in_(_BADLY_ENDED)
    ended_at = case((ends_badly, _ending().with_only_columns(job_events.c.at).scalar_subquery()))
    ending_data = case((ends_badly, _ending().with_only_columns(job_events.c.data).scalar_subquery()))
    failed_items = case((failed_at_all, dialect.rows_as_json(_failed_items())))
    failed_tasks = case((and_(failed_at_all, jobs.c.engine.is_not(None)), dialect.rows_as_json(_failed_tasks())))
    failed = or_(jobs.c.state == JobState.FAILED.value, failed_at_all)
    trace = case((failed, last_traceback().scalar_subquery())) if with_trace else null()
    return select(
        *job_columns(payloads=True),
        type_coerce(ended_at, Moment).label("ended_at"),
        type_coerce(ending_data, Payload).label("ending_data"),
        type_coerce(failed_items, Payload).label("failures"),
        type_coerce(failed_tasks, Payload).label("failed_tasks"),
        trace.label("stack_trace"),
    ).where(by_id(), visible_to(visibility))


def _ending() -> Select[Any]:
    """The last line of the history that leads to where the job is now: looked for from the end."""
    return (
        select(job_events.c.sequence)
        .where(
            job_events.c.job_id == bindparam("job_id", type_=Identifier),
            job_events.c.to_state == jobs.c.state,
        )
        .order_by(job_events.c.sequence.desc())
        .limit(1)
        .correlate(jobs)
    )


def _failed_items() -> Select[Any]:
    items = job_items.c
    return (
        select(items.position, items.last_error, items.error_code, items.attempts, items.deaths)
        .where(
            items.job_id == bindparam("job_id", type_=Identifier),
            items.role == ItemRole.ITEM.value,
            items.status == ItemStatus.ERROR.value,
        )
        .order_by(items.position)
        .limit(bindparam("failures", type_=Integer))
    )


def _failed_tasks() -> Select[Any]:
    tasks = job_tasks.c
    return (
        select(tasks.task_id, tasks.name, tasks.error, tasks.error_code, tasks.worker)
        .where(
            tasks.job_id == bindparam("job_id", type_=Identifier),
            tasks.is_counted,
            tasks.status.in_([status.value for status in BAD_ENDS]),
        )
        .order_by(tasks.updated_at, tasks.task_id)
        .limit(bindparam("failures", type_=Integer))
    )
