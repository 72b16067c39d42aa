"""Recording new jobs, their items and the first line of their history."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
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
    or_,
    select,
    text,
    true,
    update,
)

from penstock.lifecycle.states import ItemRole, ItemStatus, JobState
from penstock.store.dialects.contract import Dialect, Field
from penstock.store.queries.built_once import built_once
from penstock.store.statements.visibility import by_id
from penstock.store.tables import JOB_FOLLOWS, JOB_IS_A_GUESTS, JOB_IS_OWNED, JOB_LEADS, job_events, job_items, jobs
from penstock.store.types import Identifier

NEW_JOBS = (Field("id", Identifier()), Field("params", Text()))
_SHARED: dict[str, Any] = {
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


@built_once
def insert_jobs(dialect: Dialect) -> Insert:
    """Record jobs that differ only in their id and params."""
    return insert(jobs).from_select(*_new_jobs(dialect))


@built_once
def insert_job(dialect: Dialect) -> Insert:
    """Record one job, wake the workers of its kind and answer when that was; no row when its key is in use."""
    notice = case((jobs.c.next_claim_at.is_not(None), dialect.notice(jobs.c.kind)), else_=null())
    return dialect.insert_unless_taken(jobs).from_select(*_new_jobs(dialect)).returning(jobs.c.created_at, notice)


def _new_jobs(dialect: Dialect) -> tuple[list[str], Select[Any]]:
    rows = dialect.rows("new_jobs", NEW_JOBS)
    shared = {name: bindparam(f"the_{name}", type_=type_) for name, type_ in _SHARED.items()}
    queued = case((shared["state"] == JobState.QUEUED.value, dialect.now()), else_=null())
    turn = case((shared["last_claimable"] > shared["last_claimed"], queued), else_=null())
    columns = ["id", "params", *shared, "created_at", "updated_at", "queued_at", "next_claim_at"]
    source = select(
        rows.c.id, dialect.json(rows.c.params), *shared.values(), dialect.now(), dialect.now(), queued, turn
    ).where(text("1 = 1"))  # without a WHERE, SQLite reads ON CONFLICT as part of a join
    return columns, source


@built_once
def insert_first_items(dialect: Dialect) -> Insert:
    """One item for each new job: its plan, or its only item."""
    rows = dialect.rows("new_jobs", NEW_JOBS)
    source = select(
        rows.c.id,
        bindparam("the_user_id", type_=String),
        bindparam("the_kind", type_=String),
        bindparam("the_role", type_=String),
        bindparam("the_position", type_=Integer),
        literal(ItemStatus.PENDING.value),
        case((bindparam("the_own_input", type_=Boolean), dialect.json(rows.c.params)), else_=null()),
        dialect.now(),
    )
    columns = ["job_id", "user_id", "kind", "role", "position", "status", "input_json", "updated_at"]
    return insert(job_items).from_select(columns, source)


@built_once
def insert_first_events(dialect: Dialect) -> Insert:
    """The first line of each new job's history."""
    rows = dialect.rows("new_jobs", NEW_JOBS)
    source = select(
        rows.c.id,
        literal(1),
        literal(1),
        bindparam("the_state", type_=String),
        bindparam("the_actor", type_=String),
        bindparam("the_actor_id", type_=String),
        dialect.now(),
    )
    columns = ["job_id", "sequence", "run", "to_state", "actor", "actor_id", "at"]
    return insert(job_events).from_select(columns, source)


NEW_ITEMS = (
    Field("position", Integer()), Field("input", Text(), long=True), Field("normalized", Text(), long=True),
)  # fmt: skip


@built_once
def insert_items(dialect: Dialect) -> Insert:
    """Items of one job, in the order of their positions."""
    rows = dialect.rows("new_items", NEW_ITEMS)
    source = select(
        bindparam("the_job_id", type_=Identifier),
        bindparam("the_user_id", type_=String),
        bindparam("the_kind", type_=String),
        literal(ItemRole.ITEM.value),
        rows.c.position,
        literal(ItemStatus.PENDING.value),
        dialect.json(rows.c.input),
        dialect.json(rows.c.normalized),
        dialect.now(),
    )
    columns = [
        "job_id", "user_id", "kind", "role", "position", "status", "input_json", "normalized_json", "updated_at",
    ]  # fmt: skip
    return insert(job_items).from_select(columns, source)


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
def count_queued(dialect: Dialect) -> Select[Any]:
    """How many jobs of a kind wait, counted no further than the bound."""
    some = (
        select(jobs.c.id)
        .where(jobs.c.state == JobState.QUEUED.value, jobs.c.kind == bindparam("the_kind"))
        .limit(bindparam("the_limit", type_=Integer))
        .subquery()
    )
    return select(func.count()).select_from(some)


@built_once
def leading_job(dialect: Dialect) -> Select[Any]:
    """The one job that leads a key, locked."""
    return select(jobs.c.id, jobs.c.state).where(JOB_LEADS, *_same_work()).with_for_update(key_share=True)


@built_once
def own_job(dialect: Dialect, *, guest: bool) -> Select[Any]:
    """The active job of a key that is an owner's, or the guests', and does work: it leads, or is held or paused."""
    if guest:
        return select(jobs.c.id).where(JOB_IS_A_GUESTS, *_same_work())
    return select(jobs.c.id).where(JOB_IS_OWNED, *_same_work(), jobs.c.user_id == bindparam("the_user_id"))


def _same_work() -> tuple[ColumnElement[bool], ...]:
    return jobs.c.kind == bindparam("the_kind"), jobs.c.unique_key == bindparam("the_unique_key")


@built_once
def followers_job(dialect: Dialect) -> Select[Any]:
    """The active job in which an owner already follows a leader."""
    return select(jobs.c.id).where(
        JOB_FOLLOWS,
        jobs.c.leader_id == bindparam("the_leader_id", type_=Identifier),
        jobs.c.user_id.is_not_distinct_from(bindparam("the_user_id", type_=String)),
    )


@built_once
def fresh_result(dialect: Dialect) -> Select[Any]:
    """The newest result of a key not older than so many seconds; kept as it is until it has been copied.

    The asker's own comes first if it still waits for them. Others' count only where the job did the work: a copy is as
    old as its source, and no source itself.
    """
    own = jobs.c.user_id.is_not_distinct_from(bindparam("the_user_id", type_=String))
    waits = own & (jobs.c.state == JobState.SUCCEEDED.value)
    made_at = func.coalesce(jobs.c.result_at, jobs.c.completed_at)
    limit = dialect.later(dialect.now(), bindparam("the_seconds_ago"))
    return (
        select(jobs.c.id, case((waits, literal(1)), else_=literal(0)).label("waits"))
        .where(
            *_same_work(),
            jobs.c.state.in_([JobState.SUCCEEDED.value, JobState.COMMITTED.value, JobState.ABANDONED.value]),
            jobs.c.result.is_not(None),
            or_(jobs.c.leader_id.is_(None), waits),
            made_at >= limit,
        )
        .order_by(case((waits, 0), else_=1), made_at.desc())
        .limit(1)
        .with_for_update(read=True)
    )


@built_once
def job_exists(dialect: Dialect) -> Select[Any]:
    """Is there a job of that id?"""
    return select(jobs.c.id).where(by_id())


@built_once
def take_back_job(dialect: Dialect) -> Delete:
    """A job that this transaction has recorded, and that is not wanted after all: nobody has seen it."""
    return delete(jobs).where(by_id())


@built_once
def mark_followed(dialect: Dialect) -> Update:
    """Others wait for this job now."""
    return update(jobs).where(jobs.c.id == bindparam("the_job_id", type_=Identifier)).values(has_followers=true())


@built_once
def open_items(dialect: Dialect) -> Update:
    """The items given with a job are all there."""
    count = bindparam("the_count", type_=Integer)
    return (
        update(jobs)
        .where(jobs.c.id == bindparam("the_job_id", type_=Identifier))
        .values(total_items=count, last_claimable=count)
    )
