"""What submitting changes of jobs that are there."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, Select, Update, bindparam, func, select, true, update

from penstock.lifecycle.transitions import START, SUCCEED
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.statements.change_state import change_state
from penstock.store.statements.visibility import by_id
from penstock.store.tables import JOB_LEADS, job_items, jobs
from penstock.store.types import Identifier


@built_once
def hold_lease(dialect: Dialect) -> Select[Any]:
    """The plan's item, if its lease is still ours, locked so that nobody takes the lease before this commits."""
    return (
        select(job_items.c.id)
        .where(
            job_items.c.id == bindparam("the_item_id", type_=job_items.c.id.type),
            job_items.c.lease == bindparam("the_lease", type_=Identifier),
        )
        .with_for_update(key_share=True)
    )


@built_once
def extend_plan(dialect: Dialect) -> Update:
    """A planning job has so many more items, if so many were there before."""
    return (
        update(jobs)
        .where(
            jobs.c.id == bindparam("the_job_id", type_=Identifier),
            jobs.c.total_items == bindparam("the_total", type_=Integer),
        )
        .values(
            total_items=jobs.c.total_items + bindparam("the_more", type_=Integer),
            last_heartbeat=dialect.now(),
            updated_at=dialect.now(),
        )
    )


@built_once
def forgive_plan(dialect: Dialect) -> Update:
    """A plan that got further has no deaths behind it."""
    return (
        update(job_items)
        .where(job_items.c.id == bindparam("the_item_id", type_=job_items.c.id.type), job_items.c.deaths > 0)
        .values(deaths=0)
    )


@built_once
def leading_job(dialect: Dialect) -> Select[Any]:
    """The one job that leads a key, locked."""
    return (
        select(jobs.c.id, jobs.c.state)
        .where(JOB_LEADS, jobs.c.kind == bindparam("the_kind"), jobs.c.unique_key == bindparam("the_unique_key"))
        .with_for_update(key_share=True)
    )


@built_once
def mark_followed(dialect: Dialect) -> Update:
    """Others wait for this job now."""
    return update(jobs).where(jobs.c.id == bindparam("the_job_id", type_=Identifier)).values(has_followers=true())


@built_once
def start_follower(dialect: Dialect) -> Update:
    """START for a job that follows one which runs."""
    return change_state(dialect, START, by_id())


@built_once
def succeed_as_leader(dialect: Dialect) -> Update:
    """SUCCEED with the result and the counts of a job that is over; the copy is as old as that result."""
    leader = jobs.alias("leader")
    copied = ("result", "total_items", "processed_items", "failed_items", "not_found_items", "skipped_items", "phase")
    return change_state(
        dialect,
        SUCCEED,
        by_id() & (jobs.c.leader_id == leader.c.id),
        {name: leader.c[name] for name in copied}
        | {"result_at": func.coalesce(leader.c.result_at, leader.c.completed_at)},
    )
