"""A job with what belongs to its end, in one statement: one look, so that all of it is of the same moment."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Integer, Select, and_, bindparam, case, null, or_, select, type_coerce

from penstock.lifecycle.callers import Visibility
from penstock.lifecycle.states import FINISHED, ItemRole, ItemStatus, JobState, Work
from penstock.store.dialects.contract import Dialect
from penstock.store.engine import Transaction
from penstock.store.queries.built_once import built_once
from penstock.store.statements.visibility import by_id, visible_to
from penstock.store.tables import job_events, job_items, jobs
from penstock.store.types import Identifier, Moment, Payload

_FINISHED = [state.value for state in JobState if state in FINISHED]
_BADLY_ENDED = [state.value for state in JobState if state.work is Work.LEFT]


def read_job_report(
    transaction: Transaction,
    job_id: UUID,
    *,
    visibility: Visibility,
    caller_id: str | None,
    failures: int,
    with_trace: bool,
) -> Any:
    """The job's row, how it ended, its first ``failures`` failed items and where it failed; None if it is not there.

    What belongs to an end is looked for only in a job that has one.
    """
    statement = _read_job_report(transaction.dialect, visibility, with_trace=with_trace)
    parameters = {"the_job_id": job_id, "the_caller_id": caller_id, "failures": failures}
    return transaction.run(statement, parameters).one_or_none()


@built_once
def _read_job_report(dialect: Dialect, visibility: Visibility, *, with_trace: bool) -> Select[Any]:
    failed_at_all = and_(jobs.c.state.in_(_FINISHED), jobs.c.failed_items > 0)
    ends_badly = jobs.c.state.in_(_BADLY_ENDED)
    ended_at = case((ends_badly, _ending().with_only_columns(job_events.c.at).scalar_subquery()))
    ending_data = case((ends_badly, _ending().with_only_columns(job_events.c.data).scalar_subquery()))
    failed_items = case((failed_at_all, dialect.rows_as_json(_failed_items())))
    failed = or_(jobs.c.state == JobState.FAILED.value, failed_at_all)
    trace = case((failed, _trace().scalar_subquery())) if with_trace else null()
    return select(
        *jobs.c,
        type_coerce(ended_at, Moment).label("ended_at"),
        type_coerce(ending_data, Payload).label("ending_data"),
        type_coerce(failed_items, Payload).label("failures"),
        trace.label("stack_trace"),
    ).where(by_id(), visible_to(visibility))


def _ending() -> Select[Any]:
    """The last line of the history that leads to where the job is now: looked for from the end."""
    return (
        select(job_events.c.sequence)
        .where(
            job_events.c.job_id == bindparam("the_job_id", type_=Identifier),
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
            items.job_id == bindparam("the_job_id", type_=Identifier),
            items.role == ItemRole.ITEM.value,
            items.status == ItemStatus.ERROR.value,
        )
        .order_by(items.position)
        .limit(bindparam("failures", type_=Integer))
    )


def _trace() -> Select[Any]:
    """The traceback of the last step or item that failed with one."""
    items = job_items.c
    return (
        select(items.traceback)
        .where(
            items.job_id == bindparam("the_job_id", type_=Identifier),
            items.status == ItemStatus.ERROR.value,
            items.traceback.is_not(None),
        )
        .order_by(items.updated_at.desc(), items.id.desc())
        .limit(1)
    )
