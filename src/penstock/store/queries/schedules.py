"""What is submitted again and again: what is kept of each schedule, and who moves it on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Boolean, Delete, Insert, Select, String, Text, Update, bindparam, case, delete, select, update

from penstock.lifecycle.payloads import JSON
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import schedules
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, Moment


class ScheduleRow(NamedTuple):
    """A schedule, and how it fares."""

    name: str
    kind: str
    definition: JSON
    is_paused: bool
    next_at: datetime | None
    last_at: datetime | None
    last_job_id: UUID | None
    last_error: str | None
    updated_at: datetime


_COLUMNS = tuple(schedules.c[name] for name in ScheduleRow._fields)
_BY_NAME = schedules.c.name == bindparam("schedule", type_=String)


class DueSchedule(NamedTuple):
    """A schedule whose tick has come, locked."""

    definition: JSON
    next_at: datetime
    now: datetime


def list_schedules(transaction: Transaction) -> list[ScheduleRow]:
    """All of them, by name."""
    return transaction.fetch(ScheduleRow, _list_schedules(transaction.dialect), {})


@built_once
def _list_schedules(_: Dialect) -> Select[Any]:
    return select(*_COLUMNS).order_by(schedules.c.name)


def lock_schedule(transaction: Transaction, name: str) -> ScheduleRow | None:
    """One of them, locked."""
    return transaction.fetch_one(ScheduleRow, _lock_schedule(transaction.dialect), {"schedule": name})


@built_once
def _lock_schedule(_: Dialect) -> Select[Any]:
    return select(*_COLUMNS).where(_BY_NAME).with_for_update()


def insert_schedule(transaction: Transaction, name: str, kind: str, definition: str, next_at: datetime | None) -> None:
    """A new one, unless somebody has just written it; its definition is JSON text."""
    parameters = {"schedule": name, "kind": kind, "definition": definition, "next_at": next_at}
    transaction.execute(_insert_schedule(transaction.dialect), parameters)


@built_once
def _insert_schedule(dialect: Dialect) -> Insert:
    source = select(
        bindparam("schedule", type_=String),
        bindparam("kind", type_=String),
        dialect.json(bindparam("definition", type_=Text)),
        bindparam("next_at", type_=Moment),
        dialect.now(),
    )
    columns = ["name", "kind", "definition", "next_at", "updated_at"]
    return dialect.insert_unless_taken(schedules).from_select(columns, source)


def redefine(transaction: Transaction, name: str, kind: str, definition: str, next_at: datetime | None) -> None:
    """Another definition under the same name; whether it is paused stays."""
    parameters = {"schedule": name, "kind": kind, "definition": definition, "next_at": next_at}
    transaction.execute(_redefine(transaction.dialect), parameters)


@built_once
def _redefine(dialect: Dialect) -> Update:
    return (
        update(schedules)
        .where(_BY_NAME)
        .values(
            kind=bindparam("kind", type_=String),
            definition=dialect.json(bindparam("definition", type_=Text)),
            next_at=bindparam("next_at", type_=Moment),
            updated_at=dialect.now(),
        )
    )


def due_names(transaction: Transaction, kinds: Sequence[str]) -> list[str]:
    """The schedules of some kinds whose tick has come."""
    return transaction.values(str, _due_names(transaction.dialect), {"kinds": kinds})


@built_once
def _due_names(dialect: Dialect) -> Select[Any]:
    is_due = (schedules.c.next_at <= dialect.now()) & ~schedules.c.is_paused
    return select(schedules.c.name).where(is_due, dialect.among(schedules.c.kind, "kinds")).order_by(schedules.c.name)


def lock_due(transaction: Transaction, name: str) -> DueSchedule | None:
    """A schedule whose tick has come, locked; None when it has been moved on, or somebody is about to do so."""
    return transaction.fetch_one(DueSchedule, _lock_due(transaction.dialect), {"schedule": name})


@built_once
def _lock_due(dialect: Dialect) -> Select[Any]:
    return (
        select(schedules.c.definition, schedules.c.next_at, dialect.now().label("now"))
        .where(_BY_NAME, schedules.c.next_at <= dialect.now(), ~schedules.c.is_paused)
        .with_for_update(skip_locked=True)
    )


def move_on(
    transaction: Transaction,
    name: str,
    *,
    next_at: datetime | None,
    last_at: datetime | None,
    job_id: UUID | None,
    error: str | None,
) -> None:
    """Wait for the next tick; what the last one came to is kept."""
    parameters = {"schedule": name, "next_at": next_at, "last_at": last_at, "job": job_id, "error": error}
    transaction.execute(_move_on(transaction.dialect), parameters)


@built_once
def _move_on(dialect: Dialect) -> Update:
    last_at, job = bindparam("last_at", type_=Moment), bindparam("job", type_=Identifier)
    return (
        update(schedules)
        .where(_BY_NAME)
        .values(
            next_at=bindparam("next_at", type_=Moment),
            last_at=case((last_at.is_not(None), last_at), else_=schedules.c.last_at),
            last_job_id=case((job.is_not(None), job), else_=schedules.c.last_job_id),
            last_error=bindparam("error", type_=Text),
            updated_at=dialect.now(),
        )
    )


def set_paused(transaction: Transaction, name: str, *, paused: bool, next_at: datetime | None) -> None:
    """Pause it, or let it go on with its next tick."""
    parameters = {"schedule": name, "paused": paused, "next_at": next_at}
    transaction.execute(_set_paused(transaction.dialect), parameters)


@built_once
def _set_paused(dialect: Dialect) -> Update:
    return (
        update(schedules)
        .where(_BY_NAME)
        .values(
            is_paused=bindparam("paused", type_=Boolean),
            next_at=bindparam("next_at", type_=Moment),
            updated_at=dialect.now(),
        )
    )


def delete_schedule(transaction: Transaction, name: str) -> bool:
    """Forget it; False when there is none of that name."""
    return transaction.execute(_delete_schedule(transaction.dialect), {"schedule": name}) > 0


@built_once
def _delete_schedule(_: Dialect) -> Delete:
    return delete(schedules).where(_BY_NAME)
