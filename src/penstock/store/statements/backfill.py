"""Writing what items copy of their jobs once more."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, Select, Update, bindparam, or_, select, update

from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_items, jobs
from penstock.store.types import Identifier


@built_once
def next_jobs(dialect: Dialect) -> Select[Any]:
    """A stretch of all jobs, in the order of their ids."""
    return (
        select(jobs.c.id)
        .where(jobs.c.id > bindparam("the_job_id", type_=Identifier))
        .order_by(jobs.c.id)
        .limit(bindparam("the_limit", type_=Integer))
    )


@built_once
def copy_owner_and_kind(dialect: Dialect) -> Update:
    """The owner and the kind of these jobs, to those of their items that say otherwise."""
    return (
        update(job_items)
        .where(
            dialect.among(job_items.c.job_id, "the_jobs"),
            jobs.c.id == job_items.c.job_id,
            or_(job_items.c.user_id.is_distinct_from(jobs.c.user_id), job_items.c.kind != jobs.c.kind),
        )
        .values(user_id=jobs.c.user_id, kind=jobs.c.kind)
    )
