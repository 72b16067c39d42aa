"""Reading one job, with its items and its history, and what changes about many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    String,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    null,
    select,
    union_all,
)

from penstock.lifecycle.callers import Caller, Visibility
from penstock.lifecycle.states import FLOWING, ItemRole, ItemStatus, JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.visibility import by_id, visible_to
from penstock.store.rows import HistoryRow, JobRow, WholeItemRow
from penstock.store.tables import job_events, job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier

_PAYLOADS = frozenset({"params", "result"})


class StateCount(NamedTuple):
    """How many jobs of a kind are in a state."""

    kind: str
    state: str
    jobs: int


class JobMark(NamedTuple):
    """What changes whenever something about a job does."""

    id: UUID
    updated_at: datetime
    event_sequence: int


def job_by_id(transaction: Transaction, job_id: UUID, caller: Caller) -> JobRow | None:
    """One job, if the caller may see it."""
    parameters = {"job_id": job_id, "caller_id": caller.id}
    return transaction.fetch_one(JobRow, _job_by_id(transaction.dialect, caller.sight), parameters)


@built_once
def _job_by_id(_: Dialect, sight: Visibility) -> Select[Any]:
    return select(*job_columns(payloads=True)).where(by_id(), visible_to(sight))


def job_columns(*, payloads: bool) -> list[ColumnElement[Any]]:
    """The columns of a :class:`JobRow`; payloads may be large, and come where somebody wants them."""
    return [null().label(name) if name in _PAYLOADS and not payloads else jobs.c[name] for name in JobRow._fields]


def history_of(transaction: Transaction, job_id: UUID, *, after: int, limit: int) -> list[HistoryRow]:
    """A job's history after a given line."""
    parameters = {"job_id": job_id, "after": after, "limit": limit}
    return transaction.fetch(HistoryRow, _history_of(transaction.dialect), parameters)


@built_once
def _history_of(_: Dialect) -> Select[Any]:
    return (
        _history()
        .where(job_events.c.sequence > bindparam("after", type_=Integer))
        .order_by(job_events.c.sequence)
        .limit(bindparam("limit", type_=Integer))
    )


def last_change_to(transaction: Transaction, job_id: UUID, state: JobState) -> HistoryRow | None:
    """The last line of a job's history that leads to a given state: looked for from the end."""
    parameters = {"job_id": job_id, "state": state.value}
    return transaction.fetch_one(HistoryRow, _last_change_to(transaction.dialect), parameters)


@built_once
def _last_change_to(_: Dialect) -> Select[Any]:
    return (
        _history()
        .where(job_events.c.to_state == bindparam("state", type_=String))
        .order_by(job_events.c.sequence.desc())
        .limit(1)
    )


def _history() -> Select[Any]:
    columns = (job_events.c[name] for name in HistoryRow._fields)
    return select(*columns).where(job_events.c.job_id == bindparam("job_id", type_=Identifier))


def items_of(
    transaction: Transaction, job_id: UUID, statuses: Sequence[ItemStatus] | None, *, after: int, limit: int
) -> list[WholeItemRow]:
    """A page of a job's items in their order; the input of a single step is its job's params."""
    parameters: dict[str, Any] = {"job_id": job_id, "after": after, "limit": limit}
    if statuses is not None:
        parameters["statuses"] = [status.value for status in statuses]
    statement = _items_of(transaction.dialect, some=statuses is not None)
    return transaction.fetch(WholeItemRow, statement, parameters)


@built_once
def _items_of(dialect: Dialect, *, some: bool) -> Select[Any]:
    conditions = [
        job_items.c.job_id == bindparam("job_id", type_=Identifier),
        job_items.c.position > bindparam("after", type_=Integer),
        job_items.c.role == ItemRole.ITEM.value,
    ]
    if some:
        conditions.append(dialect.among(job_items.c.status, "statuses"))
    own_input = case((jobs.c.single_step, jobs.c.params), else_=job_items.c.input_json).label("input_json")
    columns = (own_input if name == "input_json" else job_items.c[name] for name in WholeItemRow._fields)
    return (
        select(*columns)
        .join(jobs, jobs.c.id == job_items.c.job_id)
        .where(*conditions)
        .order_by(job_items.c.position)
        .limit(bindparam("limit", type_=Integer))
    )


def trace_of(transaction: Transaction, job_id: UUID) -> str | None:
    """The traceback of the last step or item of a job that failed with one."""
    return transaction.value(str, _trace_of(transaction.dialect), {"job_id": job_id})


@built_once
def _trace_of(_: Dialect) -> Select[Any]:
    return last_traceback()


def last_traceback() -> Select[Any]:
    """The traceback that :func:`trace_of` reads."""
    return (
        select(job_items.c.traceback)
        .where(
            job_items.c.job_id == bindparam("job_id", type_=Identifier),
            job_items.c.status == ItemStatus.ERROR.value,
            job_items.c.traceback.is_not(None),
        )
        .order_by(job_items.c.updated_at.desc(), job_items.c.id.desc())
        .limit(1)
    )


def count_by_state(transaction: Transaction) -> list[StateCount]:
    """How many jobs there are of each kind in each state."""
    return transaction.fetch(StateCount, _count_by_state(transaction.dialect))


@built_once
def _count_by_state(_: Dialect) -> Select[Any]:
    return select(jobs.c.kind, jobs.c.state, func.count().label("jobs")).group_by(jobs.c.kind, jobs.c.state)


def any_in_flight(transaction: Transaction, kinds: Sequence[str]) -> bool:
    """Does a job of these kinds wait or run? Found by the index of states and kinds, not by counting."""
    return bool(transaction.values(int, _any_in_flight(transaction.dialect), {"kinds": kinds}))


@built_once
def _any_in_flight(dialect: Dialect) -> Select[Any]:
    states = [state.value for state in JobState if state in FLOWING]
    return select(literal(1)).where(jobs.c.state.in_(states), dialect.among(jobs.c.kind, "kinds")).limit(1)


def next_open_kind(transaction: Transaction, *, after: str) -> str | None:
    """The first kind behind ``after``, by name, that a job waits for or runs as here; an index is sought, not read."""
    names = transaction.values(str, _next_open_kind(transaction.dialect), {"after": after})
    return names[0] if names else None


@built_once
def _next_open_kind(_: Dialect) -> Select[Any]:
    of_each_state = [
        select(
            select(jobs.c.kind)
            .where(
                jobs.c.state == literal_column(f"'{state}'"),
                jobs.c.kind > bindparam("after", type_=String),
                jobs.c.engine.is_(None),
            )
            .order_by(jobs.c.kind)
            .limit(1)
            .subquery()
            .c.kind
        )
        for state in JobState
        if state in FLOWING
    ]
    kinds = union_all(*of_each_state).subquery().c.kind
    return select(kinds).order_by(kinds).limit(1)


def marks_of(transaction: Transaction, job_ids: Sequence[UUID]) -> list[JobMark]:
    """What changes whenever something about these jobs does."""
    return transaction.fetch(JobMark, _marks_of(transaction.dialect), {"job_ids": job_ids})


@built_once
def _marks_of(dialect: Dialect) -> Select[Any]:
    return select(jobs.c.id, jobs.c.updated_at, jobs.c.event_sequence).where(dialect.among(jobs.c.id, "job_ids"))
