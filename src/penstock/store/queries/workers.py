"""The workers that are alive, by what they said last."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Delete,
    Float,
    Insert,
    Integer,
    Select,
    String,
    Update,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    update,
)

from penstock.lifecycle.payloads import JSON
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_items, worker_deaths, workers
from penstock.store.transaction import Transaction
from penstock.store.types import Payload


class WorkerRow(NamedTuple):
    """A worker as it was when it was seen last."""

    name: str
    started_at: datetime
    seen_at: datetime
    data: dict[str, JSON]
    alive: bool


class LiveWorker(NamedTuple):
    """A worker that was seen lately, by the columns that every version has."""

    name: str
    seen_at: datetime


class BusyWorker(NamedTuple):
    """A worker that holds items, and how many."""

    locked_by: str
    items: int


def refresh_worker(transaction: Transaction, name: str, data: dict[str, JSON]) -> bool:
    """A worker is still there, with this in its hands; False when it is not known."""
    return transaction.execute(_refresh_worker(transaction.dialect), {"name": name, "data": data}) > 0


@built_once
def _refresh_worker(dialect: Dialect) -> Update:
    return (
        update(workers)
        .where(workers.c.name == bindparam("name", type_=String))
        .values(seen_at=dialect.now(), data=bindparam("data", type_=Payload))
    )


def insert_worker(transaction: Transaction, name: str, data: dict[str, JSON]) -> None:
    """A worker that was not known."""
    transaction.execute(_insert_worker(transaction.dialect), {"name": name, "data": data})


@built_once
def _insert_worker(dialect: Dialect) -> Insert:
    source = select(bindparam("name", type_=String), dialect.now(), dialect.now(), bindparam("data", type_=Payload))
    return dialect.insert_unless_taken(workers).from_select(["name", "started_at", "seen_at", "data"], source)


def delete_worker(transaction: Transaction, name: str) -> None:
    """Forget one that has stopped."""
    transaction.execute(_delete_worker(transaction.dialect), {"name": name})


@built_once
def _delete_worker(_: Dialect) -> Delete:
    return delete(workers).where(workers.c.name == bindparam("name", type_=String))


def all_workers(transaction: Transaction, *, alive_within: float) -> list[WorkerRow]:
    """All of them, by name, and whether each was seen within so many seconds."""
    return transaction.fetch(WorkerRow, _all_workers(transaction.dialect), {"seconds_ago": -alive_within})


@built_once
def _all_workers(dialect: Dialect) -> Select[Any]:
    columns = (workers.c.name, workers.c.started_at, workers.c.seen_at, workers.c.data)
    return select(*columns, (workers.c.seen_at >= _moment_ago(dialect)).label("alive")).order_by(workers.c.name)


def delete_unseen_workers(transaction: Transaction, *, seconds: float) -> int:
    """Forget those that were not seen for so many seconds; the answer is how many."""
    return transaction.execute(_delete_unseen_workers(transaction.dialect), {"seconds_ago": -seconds})


@built_once
def _delete_unseen_workers(dialect: Dialect) -> Delete:
    return delete(workers).where(workers.c.seen_at < _moment_ago(dialect))


def live_workers(transaction: Transaction, *, alive_within: float) -> list[LiveWorker]:
    """Those that were seen within so many seconds, by the columns that every version has."""
    return transaction.fetch(LiveWorker, _live_workers(transaction.dialect), {"seconds_ago": -alive_within})


@built_once
def _live_workers(dialect: Dialect) -> Select[Any]:
    return select(workers.c.name, workers.c.seen_at).where(workers.c.seen_at >= _moment_ago(dialect))


def busy_workers(transaction: Transaction) -> list[BusyWorker]:
    """Those that hold items under a lease that has not run out, and how many."""
    return transaction.fetch(BusyWorker, _busy_workers(transaction.dialect))


@built_once
def _busy_workers(dialect: Dialect) -> Select[Any]:
    is_held = job_items.c.status == literal_column("'PROCESSING'")
    return (
        select(job_items.c.locked_by, func.count().label("items"))
        .where(is_held, job_items.c.lock_expires_at > dialect.now())
        .group_by(job_items.c.locked_by)
    )


def count_more_lost(transaction: Transaction, name: str, items: int) -> bool:
    """A worker that is known to have died held so many more items; False when it is not known."""
    return transaction.execute(_count_more_lost(transaction.dialect), {"name": name, "more": items}) > 0


@built_once
def _count_more_lost(_: Dialect) -> Update:
    return (
        update(worker_deaths)
        .where(worker_deaths.c.worker == bindparam("name", type_=String))
        .values(items=worker_deaths.c["items"] + bindparam("more", type_=Integer))
    )


def insert_death(transaction: Transaction, name: str, items: int) -> None:
    """A worker died; each does so once, however many notice."""
    transaction.execute(_insert_death(transaction.dialect), {"name": name, "items": items})


@built_once
def _insert_death(dialect: Dialect) -> Insert:
    source = select(bindparam("name", type_=String), dialect.now(), bindparam("items", type_=Integer))
    return dialect.insert_unless_taken(worker_deaths).from_select(["worker", "at", "items"], source)


def count_deaths(transaction: Transaction) -> int:
    """How many workers have died."""
    [count] = transaction.values(int, _count_deaths(transaction.dialect))
    return count


@built_once
def _count_deaths(_: Dialect) -> Select[Any]:
    return select(func.count()).select_from(worker_deaths)


def _moment_ago(dialect: Dialect) -> ColumnElement[datetime]:
    return dialect.later(dialect.now(), bindparam("seconds_ago", type_=Float))
