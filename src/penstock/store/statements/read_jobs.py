"""Reading: jobs, items and history, always by key and never by OFFSET."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    String,
    Text,
    bindparam,
    case,
    cast,
    false,
    func,
    literal,
    or_,
    select,
    tuple_,
    union_all,
)

from penstock.lifecycle.callers import Visibility
from penstock.lifecycle.states import FLOWING, ItemRole, ItemStatus, JobState
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.statements.visibility import by_id, visible_to
from penstock.store.tables import job_events, job_items, jobs
from penstock.store.types import Identifier, Moment


@built_once
def job_by_id(dialect: Dialect, sight: Visibility) -> Select[Any]:
    """One job, if the caller may see it."""
    return select(*jobs.c).where(by_id(), visible_to(sight))


_LISTED = [column for column in jobs.c if column.name not in ("params", "result")]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which conditions a list of jobs has; their values are parameters."""

    states: int | None = None
    """How many; none for all."""
    kind: bool = False
    created_from: bool = False
    created_to: bool = False
    after: bool = False
    id: bool = False


@built_once
def list_jobs(dialect: Dialect, sight: Visibility, asked: Asked, *, payloads: bool) -> Select[Any]:
    """A page of jobs, newest first; their payloads may be large, and come where somebody wants them."""
    return _newest_first(sight, asked, jobs.c if payloads else _LISTED, "the_limit")


@built_once
def search_jobs(dialect: Dialect, sight: Visibility, asked: Asked, *, payloads: bool) -> Select[Any]:
    """A page of those jobs that match a text, among the first so many of a list."""
    looked_through = _newest_first(sight, asked, jobs.c if payloads else _LISTED, "the_searched").subquery("some")
    some = looked_through.c
    pattern = bindparam("the_pattern", type_=Text)
    # Only the digits: some databases keep an identifier with hyphens, some without.
    digits = func.replace(cast(some.id, Text), "-", "")
    matches: list[ColumnElement[bool]] = [
        *(column.ilike(pattern, escape="\\") for column in (some.title, some.kind, some.user_id, some.error_code)),
        digits.like(bindparam("the_first_digits", type_=Text)),
        digits.like(bindparam("the_last_digits", type_=Text)),
    ]
    return (
        select(*some)
        .where(or_(*matches))
        .order_by(some.created_at.desc(), some.id.desc())
        .limit(bindparam("the_limit", type_=Integer))
    )


@built_once
def last_searched(dialect: Dialect, sight: Visibility, asked: Asked) -> Select[Any]:
    """Where the jobs a search looks through end, and how many they are."""
    some = _newest_first(sight, asked, [jobs.c.created_at, jobs.c.id], "the_searched").subquery("some").c
    count = func.count().over().label("count")
    return select(some.created_at, some.id, count).order_by(some.created_at, some.id).limit(1)


def _newest_first(sight: Visibility, asked: Asked, columns: Any, limit: str) -> Select[Any]:
    """The list itself: a stretch of an index, read backwards; of several states one for each, and the newest of all."""
    if asked.states is None or asked.states == 1:
        return _stretch(sight, asked, columns, limit, 0)
    if asked.states == 0:
        return _stretch(sight, asked, columns, limit, 0).where(false())
    parts = [
        select(*_stretch(sight, asked, columns, limit, number).subquery(f"state_{number}").c)
        for number in range(asked.states)
    ]
    merged = union_all(*parts).subquery("merged")
    return (
        select(*merged.c)
        .order_by(merged.c.created_at.desc(), merged.c.id.desc())
        .limit(bindparam(limit, type_=Integer))
    )


def _stretch(sight: Visibility, asked: Asked, columns: Any, limit: str, state: int) -> Select[Any]:
    conditions = [visible_to(sight)]
    if asked.id:
        conditions.append(by_id())
    if asked.states:
        conditions.append(jobs.c.state == bindparam(f"the_state_{state}", type_=String))
    if asked.kind:
        conditions.append(jobs.c.kind == bindparam("the_kind", type_=String))
    if asked.created_from:
        conditions.append(jobs.c.created_at >= bindparam("the_created_from", type_=Moment))
    if asked.created_to:
        conditions.append(jobs.c.created_at < bindparam("the_created_to", type_=Moment))
    if asked.after:
        moment, last = bindparam("the_after", type_=Moment), bindparam("the_after_id", type_=Identifier)
        conditions.append(tuple_(jobs.c.created_at, jobs.c.id) < tuple_(moment, last))
    return (
        select(*columns)
        .where(*conditions)
        .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
        .limit(bindparam(limit, type_=Integer))
    )


@built_once
def history_of(dialect: Dialect) -> Select[Any]:
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
def last_change_to(dialect: Dialect) -> Select[Any]:
    """The last line of a job's history that leads to a given state: looked for from the end."""
    return (
        select(*job_events.c)
        .where(
            job_events.c.job_id == bindparam("the_job_id", type_=Identifier),
            job_events.c.to_state == bindparam("the_state", type_=String),
        )
        .order_by(job_events.c.sequence.desc())
        .limit(1)
    )


@built_once
def items_of(dialect: Dialect, *, statuses: bool) -> Select[Any]:
    """A page of a job's items in their order; the input of a single step is its job's params."""
    conditions = [
        job_items.c.job_id == bindparam("the_job_id", type_=Identifier),
        job_items.c.position > bindparam("the_after", type_=Integer),
        job_items.c.role == ItemRole.ITEM.value,
    ]
    if statuses:
        conditions.append(dialect.among(job_items.c.status, "the_statuses"))
    given = case((jobs.c.single_step, jobs.c.params), else_=job_items.c.input_json).label("input_json")
    return (
        select(*(column for column in job_items.c if column is not job_items.c.input_json), given)
        .join(jobs, jobs.c.id == job_items.c.job_id)
        .where(*conditions)
        .order_by(job_items.c.position)
        .limit(bindparam("the_limit", type_=Integer))
    )


@built_once
def trace_of(dialect: Dialect) -> Select[Any]:
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
def count_by_state(dialect: Dialect) -> Select[Any]:
    """How many jobs there are of each kind in each state."""
    return select(jobs.c.kind, jobs.c.state, func.count()).group_by(jobs.c.kind, jobs.c.state)


@built_once
def any_in_flight(dialect: Dialect) -> Select[Any]:
    """One job of these kinds that waits or runs, if there is any: by the index of states and kinds, not by counting."""
    states = [state.value for state in JobState if state in FLOWING]
    return select(literal(1)).where(jobs.c.state.in_(states), dialect.among(jobs.c.kind, "the_kinds")).limit(1)


@built_once
def marks_of(dialect: Dialect) -> Select[Any]:
    """What changes whenever something about these jobs does."""
    return select(jobs.c.id, jobs.c.updated_at, jobs.c.event_sequence).where(dialect.among(jobs.c.id, "the_jobs"))
