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

from penstock.store.dialects.contract import Ways
from penstock.store.statements.built_once import built_once
from penstock.store.tables import job_items, worker_deaths, workers
from penstock.store.types import Payload


@built_once
def refresh_worker(ways: Ways) -> Update:
    """A worker that is known is still there, with this in its hands."""
    return (
        update(workers)
        .where(workers.c.name == bindparam("the_name", type_=String))
        .values(seen_at=ways.now(), data=bindparam("the_data", type_=Payload))
    )


@built_once
def insert_worker(ways: Ways) -> Insert:
    """A worker that was not known."""
    source = select(
        bindparam("the_name", type_=String), ways.now(), ways.now(), bindparam("the_data", type_=Payload)
    )  # fmt: skip
    return ways.insert_unless_taken(workers).from_select(["name", "started_at", "seen_at", "data"], source)


@built_once
def delete_worker(ways: Ways) -> Delete:
    """One that has stopped."""
    return delete(workers).where(workers.c.name == bindparam("the_name", type_=String))


@built_once
def all_workers(ways: Ways) -> Select[Any]:
    """All of them, by name, and whether each was seen within so many seconds."""
    lately = workers.c.seen_at >= ways.later(ways.now(), bindparam("the_seconds_ago", type_=Float))
    return select(*workers.c, lately.label("alive")).order_by(workers.c.name)


@built_once
def delete_unseen_workers(ways: Ways) -> Delete:
    """Those that were not seen for so many seconds."""
    return delete(workers).where(workers.c.seen_at < ways.later(ways.now(), bindparam("the_seconds_ago", type_=Float)))


@built_once
def live_workers(ways: Ways) -> Select[Any]:
    """Those that were seen within so many seconds, by the columns that every version has."""
    lately = workers.c.seen_at >= ways.later(ways.now(), bindparam("the_seconds_ago", type_=Float))
    return select(workers.c.name, workers.c.seen_at).where(lately)


@built_once
def busy_workers(ways: Ways) -> Select[Any]:
    """Those that hold items under a lease that has not run out, and how many."""
    held = job_items.c.status == literal_column("'PROCESSING'")
    return (
        select(job_items.c.locked_by, func.count().label("items"))
        .where(held, job_items.c.lock_expires_at > ways.now())
        .group_by(job_items.c.locked_by)
    )


@built_once
def count_more_lost(ways: Ways) -> Update:
    """A worker that is known to have died held so many more items."""
    return (
        update(worker_deaths)
        .where(worker_deaths.c.worker == bindparam("the_name", type_=String))
        .values(items=worker_deaths.c["items"] + bindparam("the_items", type_=Integer))
    )


@built_once
def insert_death(ways: Ways) -> Insert:
    """A worker died; each does so once, however many notice."""
    source = select(bindparam("the_name", type_=String), ways.now(), bindparam("the_items", type_=Integer))
    return ways.insert_unless_taken(worker_deaths).from_select(["worker", "at", "items"], source)


@built_once
def count_deaths(ways: Ways) -> Select[Any]:
    """How many workers have died."""
    return select(func.count()).select_from(worker_deaths)
