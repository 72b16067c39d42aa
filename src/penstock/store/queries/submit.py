"""Recording new jobs, their first items and the first line of their history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Delete,
    Insert,
    Integer,
    Select,
    SmallInteger,
    String,
    Text,
    Update,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    null,
    select,
    text,
    update,
)

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.states import ItemRole, ItemStatus, JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.queries.visibility import by_id
from penstock.store.statement_cache import Statement
from penstock.store.tables import job_events, job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


class NewJob(NamedTuple):
    """In what new jobs differ."""

    id: UUID
    params: str
    """As JSON text."""


class CommonColumns(NamedTuple):
    """What jobs that are recorded together have in common."""

    kind: str
    user_id: str | None
    state: str
    priority: int
    unique_key: str | None
    leader_id: UUID | None
    single_step: bool
    planned: bool
    has_finalizer: bool
    total_items: int
    last_claimed: int
    last_claimable: int
    max_retries: int
    file_id: UUID | None
    ip_address: str | None
    title: str | None


class FirstItem(NamedTuple):
    """The item that each new job begins with: its plan, or its only one."""

    role: ItemRole
    position: int
    has_input: bool
    """A single step reads its job's params where they are, and so does a plan; an item beside others has an input."""


class RecordedJob(NamedTuple):
    """When a job was recorded; what told the workers comes beside it."""

    created_at: datetime
    notice: str | None


_NEW_JOBS = HandedRows("new_jobs", NewJob, id=Identifier(), params=Text())
_COMMON: dict[str, Any] = {
    "kind": String(),
    "user_id": String(),
    "state": String(),
    "priority": SmallInteger(),
    "unique_key": String(),
    "leader_id": Identifier(),
    "single_step": Boolean(),
    "planned": Boolean(),
    "has_finalizer": Boolean(),
    "total_items": Integer(),
    "last_claimed": Integer(),
    "last_claimable": Integer(),
    "max_retries": Integer(),
    "file_id": Identifier(),
    "ip_address": String(),
    "title": String(),
}


def insert_jobs(
    transaction: Transaction, new: Sequence[NewJob], common: CommonColumns, first_item: FirstItem | None, caller: Caller
) -> None:
    """Record jobs with their first items and the first lines of their history; nobody is told of them."""
    parameters = _parameters(transaction, new, common, first_item, caller)
    beginnings = _beginnings(transaction.dialect, first_item)
    last = _insert_jobs(transaction.dialect)
    transaction.execute(transaction.join_statements(beginnings, last, parameters), parameters)


@built_once
def _insert_jobs(dialect: Dialect) -> Insert:
    return insert(jobs).from_select(*_new_jobs(dialect))


def insert_job(
    transaction: Transaction, new: NewJob, common: CommonColumns, first_item: FirstItem | None, caller: Caller
) -> datetime:
    """Record one job without a unique key as :func:`insert_jobs` does, and wake its workers; the answer is when."""
    parameters = _parameters(transaction, [new], common, first_item, caller)
    beginnings = _beginnings(transaction.dialect, first_item)
    last = _insert_job(transaction.dialect)
    [row] = transaction.fetch(RecordedJob, transaction.join_statements(beginnings, last, parameters), parameters)
    return row.created_at


def insert_job_unless_taken(transaction: Transaction, new: NewJob, common: CommonColumns) -> datetime | None:
    """Record the row of one job and wake its workers; None when its unique key is in use."""
    parameters = _rows(transaction, [new]) | common._asdict()
    row = transaction.fetch_one(RecordedJob, _insert_job(transaction.dialect), parameters)
    return None if row is None else row.created_at


@built_once
def _insert_job(dialect: Dialect) -> Insert:
    notice = case((jobs.c.next_claim_at.is_not(None), dialect.notice(jobs.c.kind)), else_=null()).label("notice")
    return dialect.insert_unless_taken(jobs).from_select(*_new_jobs(dialect)).returning(jobs.c.created_at, notice)


def insert_beginnings(
    transaction: Transaction, new: NewJob, common: CommonColumns, first_item: FirstItem | None, caller: Caller
) -> None:
    """What is written with every new job, for one whose row is there."""
    parameters = _parameters(transaction, [new], common, first_item, caller)
    *others, last = _beginnings(transaction.dialect, first_item)
    transaction.execute(transaction.join_statements(tuple(others), last, parameters), parameters)


def _beginnings(dialect: Dialect, first_item: FirstItem | None) -> tuple[Statement, ...]:
    """The first item of each job, unless items are given with it, and the first line of its history."""
    if first_item is None:
        return (_insert_first_events(dialect),)
    return _insert_first_items(dialect), _insert_first_events(dialect)


def _parameters(
    transaction: Transaction, new: Sequence[NewJob], common: CommonColumns, first_item: FirstItem | None, caller: Caller
) -> dict[str, Any]:
    parameters = _rows(transaction, new) | common._asdict()
    parameters["actor"], parameters["actor_id"] = caller.actor.value, caller.id
    if first_item is not None:
        parameters["role"], parameters["position"] = first_item.role.value, first_item.position
        parameters["has_input"] = first_item.has_input
    return parameters


def _rows(transaction: Transaction, new: Sequence[NewJob]) -> dict[str, Any]:
    return _NEW_JOBS.parameters(transaction.dialect, new)


def _new_jobs(dialect: Dialect) -> tuple[list[str], Select[Any]]:
    rows = _NEW_JOBS.table(dialect)
    common = {name: bindparam(name, type_=type_) for name, type_ in _COMMON.items()}
    queued = case((common["state"] == JobState.QUEUED.value, dialect.now()), else_=null())
    claim_at = case((common["last_claimable"] > common["last_claimed"], queued), else_=null())
    now = dialect.now()
    columns = ["id", "params", *common, "created_at", "updated_at", "queued_at", "next_claim_at"]
    source = select(rows.c.id, dialect.json(rows.c.params), *common.values(), now, now, queued, claim_at).where(
        text("1 = 1")
    )  # without a WHERE, SQLite reads ON CONFLICT as part of a join
    return columns, source


@built_once
def _insert_first_items(dialect: Dialect) -> Insert:
    rows = _NEW_JOBS.table(dialect)
    source = select(
        rows.c.id,
        bindparam("user_id", type_=String),
        bindparam("kind", type_=String),
        bindparam("role", type_=String),
        bindparam("position", type_=Integer),
        literal(ItemStatus.PENDING.value),
        case((bindparam("has_input", type_=Boolean), dialect.json(rows.c.params)), else_=null()),
        dialect.now(),
    )
    columns = ["job_id", "user_id", "kind", "role", "position", "status", "input_json", "updated_at"]
    return insert(job_items).from_select(columns, source)


@built_once
def _insert_first_events(dialect: Dialect) -> Insert:
    rows = _NEW_JOBS.table(dialect)
    source = select(
        rows.c.id,
        literal(1),
        literal(1),
        bindparam("state", type_=String),
        bindparam("actor", type_=String),
        bindparam("actor_id", type_=String),
        dialect.now(),
    )
    columns = ["job_id", "sequence", "run", "to_state", "actor", "actor_id", "at"]
    return insert(job_events).from_select(columns, source)


def open_items(transaction: Transaction, job_id: UUID, count: int) -> None:
    """The items given with a job are all there: so many."""
    transaction.execute(_open_items(transaction.dialect), {"job_id": job_id, "count": count})


@built_once
def _open_items(_: Dialect) -> Update:
    count = bindparam("count", type_=Integer)
    return update(jobs).where(by_id()).values(total_items=count, last_claimable=count)


def count_queued(transaction: Transaction, kind: str, *, limit: int) -> int:
    """How many jobs of a kind wait, counted no further than the limit."""
    [count] = transaction.values(int, _count_queued(transaction.dialect), {"kind": kind, "limit": limit})
    return count


@built_once
def _count_queued(_: Dialect) -> Select[Any]:
    some = (
        select(jobs.c.id)
        .where(jobs.c.state == JobState.QUEUED.value, jobs.c.kind == bindparam("kind"))
        .limit(bindparam("limit", type_=Integer))
        .subquery()
    )
    return select(func.count()).select_from(some)


def job_exists(transaction: Transaction, job_id: UUID) -> bool:
    """Is there a job of that id?"""
    return bool(transaction.values(UUID, _job_exists(transaction.dialect), {"job_id": job_id}))


@built_once
def _job_exists(_: Dialect) -> Select[Any]:
    return select(jobs.c.id).where(by_id())


def take_back_job(transaction: Transaction, job_id: UUID) -> None:
    """Delete a job that this transaction has recorded, and that is not wanted after all: nobody has seen it."""
    transaction.execute(_take_back_job(transaction.dialect), {"job_id": job_id})


@built_once
def _take_back_job(_: Dialect) -> Delete:
    return delete(jobs).where(by_id())
