"""Deleting jobs that have been kept for long enough, and what belonged to them.

A job goes first, with its idempotency keys, by its row alone: whoever holds that row keeps it, and nobody is waited
for. From then on nothing leads to its items, its history and its tasks, which go later, a bounded number at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Delete,
    Float,
    FromClause,
    Insert,
    Integer,
    Select,
    String,
    Update,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    true,
    update,
)
from sqlalchemy.sql.dml import ReturningDelete

from penstock.lifecycle.callers import Caller, Visibility
from penstock.lifecycle.states import ItemStatus, JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.queries.visibility import visible_to
from penstock.store.tables import (
    JOB_IS_CANCELED,
    JOB_IS_DONE,
    files,
    idempotency_keys,
    job_events,
    job_items,
    job_tasks,
    jobs,
    pruned_counts,
    pruned_jobs,
)
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier

_LIMIT: ColumnElement[int] = bindparam("limit", type_=Integer)


# Jobs -----------------------------------------------------------------------------------------------------------------


def overdue_jobs(transaction: Transaction, kind: str, state: JobState, *, seconds: float, limit: int) -> list[UUID]:
    """Jobs of a kind that ended in this state longer ago than so many seconds, locked; the oldest first.

    What others have locked is left out, and so is a job in whose work somebody has a part: a worker that holds an item
    of it, and jobs that got its result, which are run again by its items.
    """
    parameters = {"kind": kind, "state": state.value, "seconds": seconds, "limit": limit}
    return transaction.values(UUID, _overdue_jobs(transaction.dialect, canceled=_is_canceled(state)), parameters)


@built_once
def _overdue_jobs(dialect: Dialect, *, canceled: bool) -> Select[Any]:
    return (
        select(jobs.c.id)
        .where(*_overdue(dialect, canceled=canceled), ~_leads(), ~_is_held())
        .order_by(jobs.c.canceled_at if canceled else jobs.c.completed_at)
        .limit(_LIMIT)
        .with_for_update(skip_locked=True)
    )


def _is_canceled(state: JobState) -> bool:
    return state is JobState.CANCELED


def _overdue(dialect: Dialect, *, canceled: bool) -> tuple[ColumnElement[bool], ...]:
    condition, ended_at = (JOB_IS_CANCELED, jobs.c.canceled_at) if canceled else (JOB_IS_DONE, jobs.c.completed_at)
    long_ago = dialect.later(dialect.now(), -bindparam("seconds", type_=Float))
    return condition, jobs.c.kind == bindparam("kind"), jobs.c.state == bindparam("state"), ended_at < long_ago


def _leads() -> ColumnElement[bool]:
    """Does another job refer to it as the one that does its work, or has done it?"""
    other = jobs.alias("other")
    return exists().where(other.c.leader_id == jobs.c.id, other.c.leader_id.is_not(None)).correlate(jobs)


def _is_held() -> ColumnElement[bool]:
    """Has a worker an item of it in hand?"""
    return (
        exists()
        .where(job_items.c.job_id == jobs.c.id, job_items.c.status == ItemStatus.PROCESSING.value)
        .correlate(jobs)
    )


class DeletedJob(NamedTuple):
    """A job that has just been deleted."""

    id: UUID
    user_id: str | None
    file_id: UUID | None
    total_items: int


_DELETED_JOBS = HandedRows(
    "deleted", DeletedJob, id=Identifier(), user_id=String(), file_id=Identifier(), total_items=Integer()
)


def delete_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> list[DeletedJob]:
    """Delete jobs that are locked, but for those that somebody copied before they were."""
    return transaction.fetch(DeletedJob, _delete_jobs(transaction.dialect), {"job_ids": job_ids})


@built_once
def _delete_jobs(dialect: Dialect) -> ReturningDelete[Any]:
    return (
        delete(jobs)
        .where(dialect.among(jobs.c.id, "job_ids"), ~_leads())
        .returning(*(jobs.c[name] for name in DeletedJob._fields))
    )


def lock_keys_of(transaction: Transaction, job_ids: Sequence[UUID]) -> list[str]:
    """The idempotency keys that lead to these jobs, locked; not those with which somebody submits just now."""
    return transaction.values(str, _lock_keys_of(transaction.dialect), {"job_ids": job_ids})


@built_once
def _lock_keys_of(dialect: Dialect) -> Select[Any]:
    is_meant = dialect.among(idempotency_keys.c.job_id, "job_ids")
    return select(idempotency_keys.c.key).where(is_meant).with_for_update(skip_locked=True)


def jobs_of_other_keys(transaction: Transaction, job_ids: Sequence[UUID], keys: Sequence[str]) -> list[UUID]:
    """The jobs of these to which other keys lead, too."""
    parameters = {"job_ids": job_ids, "keys": keys}
    return transaction.values(UUID, _jobs_of_other_keys(transaction.dialect), parameters)


@built_once
def _jobs_of_other_keys(dialect: Dialect) -> Select[Any]:
    return select(idempotency_keys.c.job_id).where(
        dialect.among(idempotency_keys.c.job_id, "job_ids"), ~dialect.among(idempotency_keys.c.key, "keys")
    )


def delete_keys_of(transaction: Transaction, job_ids: Sequence[UUID]) -> int:
    """Delete the idempotency keys that lead to these jobs."""
    return transaction.execute(_delete_keys_of(transaction.dialect), {"job_ids": job_ids})


@built_once
def _delete_keys_of(dialect: Dialect) -> Delete:
    return delete(idempotency_keys).where(dialect.among(idempotency_keys.c.job_id, "job_ids"))


def remember_deleted(transaction: Transaction, deleted_jobs: Sequence[DeletedJob]) -> None:
    """Write down which jobs there were, and that what belonged to them is still there."""
    parameters = _DELETED_JOBS.parameters(transaction.dialect, deleted_jobs)
    transaction.execute(_remember_deleted(transaction.dialect), parameters)


@built_once
def _remember_deleted(dialect: Dialect) -> Insert:
    rows = _DELETED_JOBS.table(dialect)
    source = select(rows.c.id, rows.c.user_id, rows.c.file_id, true(), dialect.now())
    return insert(pruned_jobs).from_select(["id", "user_id", "file_id", "has_leftovers", "pruned_at"], source)


def add_to_counts(transaction: Transaction, kind: str, state: JobState, *, jobs_count: int, items_count: int) -> None:
    """Count jobs and items that are gone."""
    parameters = {"kind": kind, "state": state.value, "jobs_count": jobs_count, "items_count": items_count}
    if not transaction.execute(_add_to_counts(transaction.dialect), parameters):
        transaction.execute(_begin_count(transaction.dialect), parameters)
        transaction.execute(_add_to_counts(transaction.dialect), parameters)


@built_once
def _add_to_counts(_: Dialect) -> Update:
    return (
        update(pruned_counts)
        .where(pruned_counts.c.kind == bindparam("kind"), pruned_counts.c.state == bindparam("state"))
        .values(
            jobs=pruned_counts.c.jobs + bindparam("jobs_count", type_=BigInteger),
            items=pruned_counts.c["items"] + bindparam("items_count", type_=BigInteger),
        )
    )


@built_once
def _begin_count(dialect: Dialect) -> Insert:
    source = select(bindparam("kind", type_=String), bindparam("state", type_=String))
    return dialect.insert_unless_taken(pruned_counts).from_select(["kind", "state"], source)


class OverdueCount(NamedTuple):
    """How many jobs could be deleted, and the items that they have."""

    jobs: int
    items: int


def count_overdue(transaction: Transaction, kind: str, state: JobState, *, seconds: float) -> OverdueCount:
    """How many jobs :func:`overdue_jobs` would find in the end."""
    parameters = {"kind": kind, "state": state.value, "seconds": seconds}
    statement = _count_overdue(transaction.dialect, canceled=_is_canceled(state))
    [count] = transaction.fetch(OverdueCount, statement, parameters)
    return count


@built_once
def _count_overdue(dialect: Dialect, *, canceled: bool) -> Select[Any, Any]:
    total = cast(func.coalesce(func.sum(jobs.c.total_items), 0), BigInteger)
    conditions = (*_overdue(dialect, canceled=canceled), ~_leads(), ~_is_held())
    return select(func.count().label("jobs"), total.label("items")).select_from(jobs).where(*conditions)


class PrunedCount(NamedTuple):
    """How many jobs of a kind that ended in a state have been deleted, and the items that they had."""

    kind: str
    state: str
    jobs: int
    items: int


def pruned_counts_of_all(transaction: Transaction) -> list[PrunedCount]:
    """How much has been deleted since the database was made."""
    return transaction.fetch(PrunedCount, _pruned_counts_of_all(transaction.dialect))


@built_once
def _pruned_counts_of_all(_: Dialect) -> Select[Any]:
    columns = (pruned_counts.c[name] for name in PrunedCount._fields)
    return select(*columns).order_by(pruned_counts.c.kind, pruned_counts.c.state)


def pruned_at(transaction: Transaction, job_id: UUID, caller: Caller) -> datetime | None:
    """When a job that the caller could see was deleted."""
    parameters = {"job_id": job_id, "caller_id": caller.id}
    return transaction.value(datetime, _pruned_at(transaction.dialect, caller.sight), parameters)


@built_once
def _pruned_at(_: Dialect, sight: Visibility) -> Select[Any]:
    is_meant = pruned_jobs.c.id == bindparam("job_id", type_=Identifier)
    return select(pruned_jobs.c.pruned_at).where(is_meant, visible_to(sight, pruned_jobs.c.user_id))


def keep_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> None:
    """None of these jobs changes or goes before this transaction ends, nor does the one whose items are theirs: while
    a job refers to another, that one is not pruned.
    """
    transaction.values(UUID, _keep_jobs(transaction.dialect), {"job_ids": job_ids})


@built_once
def _keep_jobs(dialect: Dialect) -> Select[Any]:
    return select(jobs.c.id).where(dialect.among(jobs.c.id, "job_ids")).with_for_update(read=True)


# What belonged to them ------------------------------------------------------------------------------------------------


class Leftover(NamedTuple):
    """A job that is gone, and whose items and history are still there."""

    id: UUID
    file_id: UUID | None


def leftovers(transaction: Transaction, *, limit: int) -> list[Leftover]:
    """Jobs of which something is left, those deleted first first; locked, without those that others clear away."""
    return transaction.fetch(Leftover, _leftovers(transaction.dialect), {"limit": limit})


@built_once
def _leftovers(_: Dialect) -> Select[Any]:
    return (
        select(pruned_jobs.c.id, pruned_jobs.c.file_id)
        .where(pruned_jobs.c.has_leftovers)
        .order_by(pruned_jobs.c.pruned_at)
        .limit(_LIMIT)
        .with_for_update(skip_locked=True)
    )


def delete_items_of(transaction: Transaction, job_ids: Sequence[UUID], *, limit: int) -> int:
    """Delete up to so many items of jobs that are gone; the answer is how many."""
    return transaction.execute(_delete_items_of(transaction.dialect), {"job_ids": job_ids, "limit": limit})


@built_once
def _delete_items_of(dialect: Dialect) -> Delete:
    old = job_items.alias("old")
    old_rows = (
        select(old.c.id).where(dialect.among(old.c.job_id, "job_ids")).limit(_LIMIT).with_for_update(skip_locked=True)
    )
    return delete(job_items).where(job_items.c.id.in_(old_rows.correlate(None)))


def delete_rest_of(transaction: Transaction, job_ids: Sequence[UUID]) -> int:
    """Delete the history and the tasks of jobs that are gone; the answer is how many rows that were."""
    parameters = {"job_ids": job_ids}
    events = transaction.execute(_delete_events_of(transaction.dialect), parameters)
    return events + transaction.execute(_delete_tasks_of(transaction.dialect), parameters)


@built_once
def _delete_events_of(dialect: Dialect) -> Delete:
    return delete(job_events).where(dialect.among(job_events.c.job_id, "job_ids"))


@built_once
def _delete_tasks_of(dialect: Dialect) -> Delete:
    return delete(job_tasks).where(dialect.among(job_tasks.c.job_id, "job_ids"))


def note_cleared(transaction: Transaction, job_ids: Sequence[UUID]) -> int:
    """Nothing is left of those of these jobs that have no items any more; the answer is how many."""
    return transaction.execute(_note_cleared(transaction.dialect), {"job_ids": job_ids})


@built_once
def _note_cleared(dialect: Dialect) -> Update:
    has_items = exists().where(job_items.c.job_id == pruned_jobs.c.id).correlate(pruned_jobs)
    return (
        update(pruned_jobs)
        .where(dialect.among(pruned_jobs.c.id, "job_ids"), ~has_items)
        .values(has_leftovers=literal(False, type_=Boolean))
    )


# Files ----------------------------------------------------------------------------------------------------------------


def free_files(transaction: Transaction, file_ids: Sequence[UUID]) -> list[UUID]:
    """The files of these that are there, locked; without those that somebody is just submitting work for."""
    return transaction.values(UUID, _free_files(transaction.dialect), {"file_ids": file_ids})


@built_once
def _free_files(dialect: Dialect) -> Select[Any]:
    return select(files.c.id).where(dialect.among(files.c.id, "file_ids")).with_for_update(skip_locked=True)


def existing_files(transaction: Transaction, file_ids: Sequence[UUID]) -> list[UUID]:
    """The files of these whose records are there."""
    return transaction.values(UUID, _existing_files(transaction.dialect), {"file_ids": file_ids})


@built_once
def _existing_files(dialect: Dialect) -> Select[Any]:
    return select(files.c.id).where(dialect.among(files.c.id, "file_ids"))


def delete_unused_files(transaction: Transaction, file_ids: Sequence[UUID]) -> list[str]:
    """Delete the records of the files, which are locked, that no job has; the answer is their digests."""
    return transaction.values(str, _delete_unused_files(transaction.dialect), {"file_ids": file_ids})


@built_once
def _delete_unused_files(dialect: Dialect) -> ReturningDelete[Any]:
    is_used = exists().where(jobs.c.file_id == files.c.id, jobs.c.file_id.is_not(None)).correlate(files)
    return delete(files).where(dialect.among(files.c.id, "file_ids"), ~is_used).returning(files.c.sha256)


def has_file_with(transaction: Transaction, sha256: str) -> bool:
    """Is there a record of a file with these bytes?"""
    return bool(transaction.values(UUID, _has_file_with(transaction.dialect), {"sha256": sha256}))


@built_once
def _has_file_with(_: Dialect) -> Select[Any]:
    return select(files.c.id).where(files.c.sha256 == bindparam("sha256", type_=String)).limit(1)


# What is forgotten by its age -----------------------------------------------------------------------------------------


def delete_old_keys(transaction: Transaction, *, seconds: float, limit: int) -> int:
    """Delete idempotency keys older than so many seconds; not those whose job is not over."""
    return transaction.execute(_delete_old_keys(transaction.dialect), {"seconds": seconds, "limit": limit})


@built_once
def _delete_old_keys(dialect: Dialect) -> Delete:
    old = idempotency_keys.alias("old")
    is_active = exists().where(jobs.c.id == old.c.job_id, ~(JOB_IS_DONE | JOB_IS_CANCELED)).correlate(old)
    old_rows = _oldest(dialect, old, old.c.key, old.c.created_at).where(~is_active)
    return delete(idempotency_keys).where(idempotency_keys.c.key.in_(old_rows.correlate(None)))


def forget_deleted(transaction: Transaction, *, seconds: float, limit: int) -> int:
    """Forget jobs that were deleted longer ago than so many seconds."""
    return transaction.execute(_forget_deleted(transaction.dialect), {"seconds": seconds, "limit": limit})


@built_once
def _forget_deleted(dialect: Dialect) -> Delete:
    old = pruned_jobs.alias("old")
    old_rows = _oldest(dialect, old, old.c.id, old.c.pruned_at).where(~old.c.has_leftovers)
    return delete(pruned_jobs).where(pruned_jobs.c.id.in_(old_rows.correlate(None)))


def _oldest(dialect: Dialect, table: FromClause, key: ColumnElement[Any], moment: ColumnElement[Any]) -> Select[Any]:
    """The keys of the oldest rows, locked; not those that others have locked."""
    long_ago = dialect.later(dialect.now(), -bindparam("seconds", type_=Float))
    old_rows = select(key).select_from(table).where(moment < long_ago)
    return old_rows.order_by(moment).limit(_LIMIT).with_for_update(skip_locked=True, of=table)
