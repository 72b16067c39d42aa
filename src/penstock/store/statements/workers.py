"""The workers that are alive, by what they said last."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
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

from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_items, worker_deaths, workers
from penstock.store.types import Payload


@built_once
def refresh_worker(dialect: Dialect) -> Update:
    """A worker that is known is still there, with this in its hands."""
    return (
        update(workers)
        .where(workers.c.name == bindparam("the_name", type_=String))
        .values(seen_at=dialect.now(), data=bindparam("the_data", type_=Payload))
    )


@built_once
def insert_worker(dialect: Dialect) -> Insert:
    """A worker that was not known."""
    source = select(
        bindparam("the_name", type_=String), dialect.now(), dialect.now(), bindparam("the_data", type_=Payload)
    )  # fmt: skip
    return dialect.insert_unless_taken(workers).from_select(["name", "started_at", "seen_at", "data"], source)


@built_once
def delete_worker(dialect: Dialect) -> Delete:
    """One that has stopped."""
    return delete(workers).where(workers.c.name == bindparam("the_name", type_=String))


@built_once
def all_workers(dialect: Dialect) -> Select[Any]:
    """All of them, by name, and whether each was seen within so many seconds."""
    lately = workers.c.seen_at >= dialect.later(dialect.now(), bindparam("the_seconds_ago", type_=Float))
    return select(*workers.c, lately.label("alive")).order_by(workers.c.name)


@built_once
def delete_unseen_workers(dialect: Dialect) -> Delete:
    """Those that were not seen for so many seconds."""
    return delete(workers).where(
        workers.c.seen_at < dialect.later(dialect.now(), bindparam("the_seconds_ago", type_=Float))
    )


@built_once
def live_workers(dialect: Dialect) -> Select[Any]:
    """Those that were seen within so many seconds, by the columns that every version has."""
    lately = workers.c.seen_at >= dialect.later(dialect.now(), bindparam("the_seconds_ago", type_=Float))
    return select(workers.c.name, workers.c.seen_at).where(lately)


@built_once
def busy_workers(dialect: Dialect) -> Select[Any]:
    """Those that hold items under a lease that has not run out, and how many."""
    held = job_items.c.status == literal_column("'PROCESSING'")
    return (
        select(job_items.c.locked_by, func.count().label("items"))
        .where(held, job_items.c.lock_expires_at > dialect.now())
        .group_by(job_items.c.locked_by)
    )


@built_once
def count_more_lost(dialect: Dialect) -> Update:
    """A worker that is known to have died held so many more items."""
    return (
        update(worker_deaths)
        .where(worker_deaths.c.worker == bindparam("the_name", type_=String))
        .values(items=worker_deaths.c["items"] + bindparam("the_items", type_=Integer))
    )


@built_once
def insert_death(dialect: Dialect) -> Insert:
    """A worker died; each does so once, however many notice."""
    source = select(bindparam("the_name", type_=String), dialect.now(), bindparam("the_items", type_=Integer))
    return dialect.insert_unless_taken(worker_deaths).from_select(["worker", "at", "items"], source)


@built_once
def count_deaths(dialect: Dialect) -> Select[Any]:
    """How many workers have died."""
    return select(func.count()).select_from(worker_deaths)
