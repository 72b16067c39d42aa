"""What a worker's heartbeat asks: longer leases, and which of its jobs were stopped."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Float, Select, Text, Update, bindparam, select, update

from penstock.lifecycle.states import JobState
from penstock.store.dialects.contract import Dialect
from penstock.store.statements.built_once import built_once
from penstock.store.tables import job_items, jobs
from penstock.store.types import Identifier, RowNumber


def _ours(dialect: Dialect) -> Select[Any]:
    """The items of ``the_items`` whose lease is one of ``the_leases``."""
    ours = dialect.check(dialect.among(job_items.c.lease, "the_leases"))
    return select(job_items.c.id).where(dialect.among(job_items.c.id, "the_items"), ours)


@built_once
def extend_leases(dialect: Dialect) -> Update:
    """Longer leases for the items we still hold; those it does not return are ours no more, or locked just now."""
    free = _ours(dialect).with_for_update(skip_locked=True, key_share=True).cte("free")
    return (
        update(job_items)
        .where(job_items.c.id == free.c.id)
        .values(lock_expires_at=dialect.later(dialect.now(), bindparam("the_lease_seconds", type_=Float)))
        .returning(job_items.c.id)
    )


@built_once
def held_items(dialect: Dialect) -> Select[Any]:
    """The items that are still ours, also those that somebody has locked."""
    return _ours(dialect)


@built_once
def beat(dialect: Dialect) -> Update:
    """A sign of life for the jobs we work on; who has one locked is a sign of life too, and not worth a deadlock."""
    running = (
        select(jobs.c.id)
        .where(dialect.among(jobs.c.id, "the_jobs"), jobs.c.state == JobState.RUNNING.value)
        .with_for_update(skip_locked=True, key_share=True)
    )
    return update(jobs).where(jobs.c.id.in_(running)).values(last_heartbeat=dialect.now())


@built_once
def stopped_jobs(dialect: Dialect) -> Select[Any]:
    """Which of these jobs do not run any more, or not with us: their handlers need not go on."""
    flowing = [JobState.QUEUED.value, JobState.RUNNING.value, JobState.PAUSED.value]
    return select(jobs.c.id).where(dialect.among(jobs.c.id, "the_jobs"), jobs.c.state.not_in(flowing))


@built_once
def note_alone(dialect: Dialect) -> Update:
    """The item runs alone in its worker under this lease, if that still holds."""
    lease = bindparam("the_lease", type_=Identifier)
    return (
        update(job_items)
        .where(job_items.c.id == bindparam("the_item_id", type_=RowNumber), job_items.c.lease == lease)
        .values(alone=lease)
    )


@built_once
def say(dialect: Dialect) -> Update:
    """A message for the people who watch, as long as the job runs."""
    return (
        update(jobs)
        .where(jobs.c.id == bindparam("the_job_id", type_=Identifier), jobs.c.state == JobState.RUNNING.value)
        .values(message=bindparam("the_message", type_=Text), last_heartbeat=dialect.now(), updated_at=dialect.now())
    )
