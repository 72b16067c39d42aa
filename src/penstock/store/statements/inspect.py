"""Reading: jobs, items and history, always by key and never by OFFSET."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, Select, String, bindparam, case, func, select, tuple_

from penstock.lifecycle.callers import Sight
from penstock.lifecycle.states import ItemRole, ItemStatus
from penstock.store.dialects.contract import Ways
from penstock.store.statements.built_once import built_once
from penstock.store.statements.selecting import by_id, visible_to
from penstock.store.tables import job_events, job_items, jobs
from penstock.store.types import Identifier, Moment


@built_once
def job_by_id(ways: Ways, sight: Sight) -> Select[Any]:
    """One job, if the caller may see it."""
    return select(*jobs.c).where(by_id(), visible_to(sight))


_LISTED = [column for column in jobs.c if column.name not in ("params", "result")]


@built_once
def list_jobs(ways: Ways, sight: Sight, *, states: bool, kind: bool, after: bool, payloads: bool) -> Select[Any]:
    """A page of jobs, newest first; their payloads may be large, and come where somebody wants them."""
    conditions = [visible_to(sight)]
    if states:
        conditions.append(ways.among(jobs.c.state, "the_states"))
    if kind:
        conditions.append(jobs.c.kind == bindparam("the_kind", type_=String))
    if after:
        moment, last = bindparam("the_after", type_=Moment), bindparam("the_after_id", type_=Identifier)
        conditions.append(tuple_(jobs.c.created_at, jobs.c.id) < tuple_(moment, last))
    return (
        select(*(jobs.c if payloads else _LISTED))
        .where(*conditions)
        .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
        .limit(bindparam("the_limit", type_=Integer))
    )


@built_once
def history_of(ways: Ways) -> Select[Any]:
    """A job's history after a given line."""
    return (
        select(*job_events.c)
        .where(
            job_events.c.job_id == bindparam("the_job_id", type_=Identifier),
            job_events.c.sequence > bindparam("the_after", type_=Integer),
        )
        .order_by(job_events.c.sequence)
        .limit(bindparam("the_limit", type_=Integer))
    )


@built_once
def items_of(ways: Ways, *, statuses: bool) -> Select[Any]:
    """A page of a job's items in their order; the input of a single step is its job's params."""
    conditions = [
        job_items.c.job_id == bindparam("the_job_id", type_=Identifier),
        job_items.c.position > bindparam("the_after", type_=Integer),
        job_items.c.role == ItemRole.ITEM.value,
    ]
    if statuses:
        conditions.append(ways.among(job_items.c.status, "the_statuses"))
    given = case((jobs.c.single_step, jobs.c.params), else_=job_items.c.input_json).label("input_json")
    return (
        select(*(column for column in job_items.c if column is not job_items.c.input_json), given)
        .join(jobs, jobs.c.id == job_items.c.job_id)
        .where(*conditions)
        .order_by(job_items.c.position)
        .limit(bindparam("the_limit", type_=Integer))
    )


@built_once
def trace_of(ways: Ways) -> Select[Any]:
    """The traceback of the last step or item of a job that failed with one."""
    return (
        select(job_items.c.traceback)
        .where(
            job_items.c.job_id == bindparam("the_job_id", type_=Identifier),
            job_items.c.status == ItemStatus.ERROR.value,
            job_items.c.traceback.is_not(None),
        )
        .order_by(job_items.c.updated_at.desc(), job_items.c.id.desc())
        .limit(1)
    )


@built_once
def count_by_state(ways: Ways) -> Select[Any]:
    """How many jobs there are of each kind in each state."""
    return select(jobs.c.kind, jobs.c.state, func.count()).group_by(jobs.c.kind, jobs.c.state)


@built_once
def marks_of(ways: Ways) -> Select[Any]:
    """What changes whenever something about these jobs does."""
    return select(jobs.c.id, jobs.c.updated_at, jobs.c.event_sequence).where(ways.among(jobs.c.id, "the_jobs"))
