"""The tasks of jobs that another engine moves: what is heard of them, how many there are, and who should be asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    FromClause,
    Insert,
    Integer,
    Select,
    SmallInteger,
    String,
    Text,
    Update,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    text,
    update,
)

from penstock.lifecycle.states import JobState, Phase, TrackingEngine
from penstock.lifecycle.tracked_tasks import BAD_ENDS, FIRST_END, DecidingTask, TaskCount, TaskStatus
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.queries.visibility import by_id, by_ids
from penstock.store.tables import TASK_IS_OPEN, job_tasks, jobs, workers
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier

_OF_JOB = job_tasks.c.job_id == bindparam("job_id", type_=Identifier)
_ENDS = [status.value for status in BAD_ENDS]


def mark_engine(transaction: Transaction, job_id: UUID, engine: TrackingEngine) -> None:
    """A job that was just recorded is moved by another engine."""
    transaction.execute(_mark_engine(transaction.dialect), {"job_id": job_id, "moved_by": engine.value})


@built_once
def _mark_engine(_: Dialect) -> Update:
    return update(jobs).where(by_id()).values(engine=bindparam("moved_by", type_=String))


class HeardTask(NamedTuple):
    """What is heard of a task, as it is handed to the database."""

    job_id: UUID
    task_id: str
    name: str | None
    version: int
    status: int
    leads_to: str | None
    is_root: bool
    is_awaited: bool
    is_counted: bool
    acks_late: bool
    worker: str | None
    error: str | None
    error_code: str | None
    error_class: str | None
    killed_by: str | None
    result: str | None


_HEARD_TASKS = HandedRows(
    "heard",
    HeardTask,
    job_id=Identifier(),
    task_id=String(),
    name=String(),
    version=Integer(),
    status=SmallInteger(),
    leads_to=String(),
    is_root=Boolean(),
    is_awaited=Boolean(),
    is_counted=Boolean(),
    acks_late=Boolean(),
    worker=String(),
    error=Text(),
    error_code=String(),
    error_class=String(),
    killed_by=String(),
    result=Text(),
)


def upsert_tasks(transaction: Transaction, heard_tasks: Sequence[HeardTask]) -> None:
    """Write what is heard of tasks, each once: a row that is there moves forward, or learns what it did not know."""
    parameters = _HEARD_TASKS.parameters(transaction.dialect, heard_tasks)
    transaction.execute(_insert_tasks(transaction.dialect), parameters)
    transaction.execute(_advance_tasks(transaction.dialect), parameters)


@built_once
def _insert_tasks(dialect: Dialect) -> Insert:
    rows = _HEARD_TASKS.table(dialect)
    *cells, result = rows.c
    source = select(*cells, dialect.json(result), dialect.now(), dialect.now()).where(text("1 = 1"))
    columns = [*HeardTask._fields, "checked_at", "updated_at"]
    return dialect.insert_unless_taken(job_tasks).from_select(columns, source)


@built_once
def _advance_tasks(dialect: Dialect) -> Update:
    """Only what is new: a row that was inserted just now, or heard of before, is left as it is."""
    rows, task = _HEARD_TASKS.table(dialect), job_tasks.c
    is_newer = _is_newer(rows)
    moved_names = ("version", "status", "error", "error_code", "error_class", "killed_by")
    learned_names = ("name", "leads_to")
    knows_more = or_(
        *(and_(task[name].is_(None), rows.c[name].is_not(None)) for name in (*learned_names, "worker")),
        and_(rows.c.is_root, ~task.is_root),
        and_(rows.c.is_awaited, ~task.is_awaited),
        and_(~rows.c.is_counted, task.is_counted),
        and_(rows.c.acks_late, ~task.acks_late),
    )
    return (
        update(job_tasks)
        .where(task.job_id == rows.c.job_id, task.task_id == rows.c.task_id, or_(is_newer, knows_more))
        .values(
            **{name: case((is_newer, rows.c[name]), else_=task[name]) for name in moved_names},
            **{name: func.coalesce(task[name], rows.c[name]) for name in learned_names},
            worker=case(
                (is_newer, func.coalesce(rows.c.worker, task.worker)), else_=func.coalesce(task.worker, rows.c.worker)
            ),
            result=case((is_newer, dialect.json(rows.c.result)), else_=task.result),
            is_root=or_(task.is_root, rows.c.is_root),
            is_awaited=or_(task.is_awaited, rows.c.is_awaited),
            is_counted=and_(task.is_counted, rows.c.is_counted),
            acks_late=or_(task.acks_late, rows.c.acks_late),
            checked_at=dialect.now(),
            updated_at=dialect.now(),
        )
    )


def _is_newer(rows: FromClause) -> ColumnElement[bool]:
    task = job_tasks.c
    return or_(
        rows.c.version > task.version,
        and_(rows.c.version == task.version, rows.c.status > task.status),
    )


class TrackedJob(NamedTuple):
    """A job that another engine moves, as it is before its tasks are counted."""

    id: UUID
    kind: str
    state: str
    phase: str
    message: str | None
    total_items: int
    processed_items: int
    failed_items: int
    skipped_items: int


def lock_tracked_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> list[TrackedJob]:
    """Those of the jobs that another engine moves, locked in the order of their ids."""
    return transaction.fetch(TrackedJob, _lock_tracked_jobs(transaction.dialect), {"job_ids": job_ids})


@built_once
def _lock_tracked_jobs(dialect: Dialect) -> Select[Any]:
    return (
        select(*(jobs.c[name] for name in TrackedJob._fields))
        .where(by_ids(dialect), jobs.c.engine.is_not(None))
        .order_by(jobs.c.id)
        .with_for_update(key_share=True)
    )


def count_tasks(transaction: Transaction, job_id: UUID) -> list[TaskCount]:
    """How many tasks of a job there are of each sort."""
    return transaction.fetch(TaskCount, _count_tasks(transaction.dialect), {"job_id": job_id})


@built_once
def _count_tasks(_: Dialect) -> Select[Any]:
    alike = (job_tasks.c.status, job_tasks.c.is_root, job_tasks.c.is_awaited, job_tasks.c.is_counted)
    return select(*alike, func.count().label("tasks")).where(_OF_JOB).group_by(*alike)


_DECIDING = tuple(job_tasks.c[name] for name in DecidingTask._fields)


def deciding_tasks(transaction: Transaction, job_id: UUID, *, limit: int) -> list[DecidingTask]:
    """The root, what was awaited or still is, and what did not end well though others wait for it; by their ends."""
    return transaction.fetch(DecidingTask, _deciding_tasks(transaction.dialect), {"job_id": job_id, "limit": limit})


@built_once
def _deciding_tasks(_: Dialect) -> Select[Any]:
    task = job_tasks.c
    blocks = and_(task.leads_to.is_not(None), task.status >= FIRST_END.value, task.status < TaskStatus.SUCCEEDED.value)
    return (
        select(*_DECIDING)
        .where(_OF_JOB, or_(task.is_root, task.is_awaited, blocks))
        .order_by(task.updated_at, task.task_id)
        .limit(bindparam("limit", type_=Integer))
    )


def first_failed_task(transaction: Transaction, job_id: UUID) -> DecidingTask | None:
    """The first of a job's tasks that did not end well."""
    return transaction.fetch_one(DecidingTask, _first_failed_task(transaction.dialect), {"job_id": job_id})


@built_once
def _first_failed_task(_: Dialect) -> Select[Any]:
    return (
        select(*_DECIDING)
        .where(_OF_JOB, job_tasks.c.status.in_(_ENDS), job_tasks.c.is_counted)
        .order_by(job_tasks.c.updated_at, job_tasks.c.task_id)
        .limit(1)
    )


def show_progress(transaction: Transaction, job_id: UUID, *, total: int, phase: Phase, message: str | None) -> None:
    """How many tasks a job has, and what it is busy with."""
    parameters = {"job_id": job_id, "total": total, "new_phase": phase.value, "new_message": message}
    transaction.execute(_show_progress(transaction.dialect), parameters)


@built_once
def _show_progress(dialect: Dialect) -> Update:
    return (
        update(jobs)
        .where(by_id())
        .values(
            total_items=bindparam("total", type_=Integer),
            phase=bindparam("new_phase", type_=String),
            message=bindparam("new_message", type_=Text),
            updated_at=dialect.now(),
        )
    )


# What is asked about when nothing is heard ----------------------------------------------------------------------------


class QuietTask(NamedTuple):
    """A task that is open, and of which nothing was heard for a while."""

    job_id: UUID
    task_id: str
    name: str | None
    version: int
    status: int
    is_awaited: bool
    acks_late: bool
    worker: str | None
    worker_seen_at: datetime | None
    updated_at: datetime
    quiet_seconds: float
    worker_silent_seconds: float | None


def take_quiet_tasks(
    transaction: Transaction, *, seconds: float, limit: int, worker: str | None = None
) -> list[QuietTask]:
    """Open tasks that nobody has asked about for so long, the longest first; they are marked as asked about now.

    With a ``worker``, those in its hands.
    """
    parameters = {"seconds": seconds, "limit": limit, "held_by": worker}
    statement = _quiet_tasks(transaction.dialect, of_worker=worker is not None)
    tasks = transaction.fetch(QuietTask, statement, parameters)
    if tasks:
        asked_tasks = [AskedTask(task.job_id, task.task_id) for task in tasks]
        transaction.execute(_mark_asked(transaction.dialect), _ASKED_TASKS.parameters(transaction.dialect, asked_tasks))
    return tasks


class AskedTask(NamedTuple):
    """Which task it is."""

    job_id: UUID
    task_id: str


_ASKED_TASKS = HandedRows("asked", AskedTask, job_id=Identifier(), task_id=String())


@built_once
def _quiet_tasks(dialect: Dialect, *, of_worker: bool) -> Select[Any]:
    task, now = job_tasks.c, dialect.now()
    in_hands = and_(task.status == TaskStatus.STARTED.value, task.worker == bindparam("held_by", type_=String))
    return (
        select(
            task.job_id, task.task_id, task.name, task.version, task.status, task.is_awaited, task.acks_late,
            task.worker,
            workers.c.seen_at.label("worker_seen_at"),
            task.updated_at,
            dialect.seconds_between(task.updated_at, now).label("quiet_seconds"),
            dialect.seconds_between(workers.c.seen_at, now).label("worker_silent_seconds"),
        )
        .select_from(job_tasks.outerjoin(workers, workers.c.name == task.worker))
        .where(
            TASK_IS_OPEN,
            *([in_hands] if of_worker else []),
            task.checked_at < dialect.later(now, -bindparam("seconds", type_=Float)),
        )
        .order_by(task.checked_at)
        .limit(bindparam("limit", type_=Integer))
    )  # fmt: skip


@built_once
def _mark_asked(dialect: Dialect) -> Update:
    rows = _ASKED_TASKS.table(dialect)
    return (
        update(job_tasks)
        .where(job_tasks.c.job_id == rows.c.job_id, job_tasks.c.task_id == rows.c.task_id)
        .values(checked_at=dialect.now())
    )


def count_in_hands(transaction: Transaction, worker: str) -> int:
    """How many tasks a worker has started, and nobody has heard the end of."""
    [count] = transaction.values(int, _count_in_hands(transaction.dialect), {"name": worker})
    return count


@built_once
def _count_in_hands(_: Dialect) -> Select[Any]:
    task = job_tasks.c
    return select(func.count()).where(
        TASK_IS_OPEN, task.status == TaskStatus.STARTED.value, task.worker == bindparam("name", type_=String)
    )


class WaitingJob(NamedTuple):
    """A running job of which nothing was heard for a while."""

    id: UUID
    quiet_seconds: float


def quiet_jobs(transaction: Transaction, engine: TrackingEngine, *, seconds: float, limit: int) -> list[WaitingJob]:
    """Jobs that the engine moves, and that have not changed for so long."""
    parameters = {"moved_by": engine.value, "seconds": seconds, "limit": limit}
    return transaction.fetch(WaitingJob, _quiet_jobs(transaction.dialect), parameters)


@built_once
def _quiet_jobs(dialect: Dialect) -> Select[Any]:
    last_heard = select(func.max(job_tasks.c.updated_at)).where(job_tasks.c.job_id == jobs.c.id).scalar_subquery()
    quiet = dialect.seconds_between(func.coalesce(last_heard, jobs.c.created_at), dialect.now())
    active = [JobState.QUEUED.value, JobState.RUNNING.value]
    return (
        select(jobs.c.id, quiet.label("quiet_seconds"))
        .where(
            jobs.c.state.in_(active),
            jobs.c.engine.is_not(None),
            jobs.c.engine == bindparam("moved_by", type_=String),
            quiet >= bindparam("seconds", type_=Float),
        )
        .order_by(jobs.c.updated_at)
        .limit(bindparam("limit", type_=Integer))
    )


def stopped_jobs(transaction: Transaction, *, seconds: float, limit: int) -> list[UUID]:
    """Jobs that were canceled, or failed, within so many seconds while tasks of theirs are still open."""
    return transaction.values(UUID, _stopped_jobs(transaction.dialect), {"seconds": seconds, "limit": limit})


@built_once
def _stopped_jobs(dialect: Dialect) -> Select[Any]:
    return (
        select(jobs.c.id)
        .where(
            jobs.c.state.in_([JobState.CANCELED.value, JobState.FAILED.value]),
            jobs.c.engine.is_not(None),
            jobs.c.state_since > dialect.later(dialect.now(), -bindparam("seconds", type_=Float)),
            select(job_tasks.c.task_id)
            .where(
                job_tasks.c.job_id == jobs.c.id, TASK_IS_OPEN, job_tasks.c.status > TaskStatus.EXPECTED.value
            )
            .exists(),
        )
        .order_by(jobs.c.id)
        .limit(bindparam("limit", type_=Integer))
    )  # fmt: skip
