"""Submitting again and again: one job for each tick, however many programs look after it.

The rows are what counts: a program writes down what it declares when it starts to work, and whoever sees first that a
tick has come locks the row, submits and moves it on to the next tick, in one transaction. So a tick is one job or none,
and a program that dies in between leaves the tick to the next one. The moments compared are the database's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import structlog

from penstock.errors import InvalidInput, PenstockError, StoreLocked, StoreUnavailable
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.job import Job, SubmitOutcome
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.payloads import encode
from penstock.lifecycle.schedules import Schedule
from penstock.operations.read_jobs import get_job
from penstock.operations.request import Request
from penstock.operations.submit import submit
from penstock.store.engine import Store
from penstock.store.queries import schedules as queries
from penstock.store.queries.delayed_jobs import set_run_at
from penstock.store.queries.maintenance import current_moment
from penstock.store.queries.schedules import ScheduleRow
from penstock.store.transaction import Transaction

_log = structlog.get_logger("penstock.scheduler")


@dataclass(frozen=True, slots=True)
class ScheduleStatus:
    """A schedule, and how it fares."""

    schedule: Schedule
    is_paused: bool
    next_at: datetime | None
    last_at: datetime | None
    """The last tick that was run, or the moment when somebody ran it by hand."""
    last_job_id: UUID | None
    last_error: str | None
    """Why the last tick could not be submitted."""


def declare(transaction: Transaction, schedules: Iterable[Schedule], *, max_bytes: int) -> None:
    """Write down what a program declares. A new schedule, and one with another definition, waits for its next tick."""
    for schedule in schedules:
        text = encode(schedule.as_json(), max_bytes=max_bytes, at="schedule")
        row = queries.lock_schedule(transaction, schedule.name)
        if row is not None and row.definition == schedule.as_json():
            continue
        next_at = schedule.first_tick(current_moment(transaction))
        if row is None:
            queries.insert_schedule(transaction, schedule.name, schedule.kind, text, next_at)
        else:
            queries.redefine(transaction, schedule.name, schedule.kind, text, next_at)


def submit_due(store: Store, kinds: Kinds, *, max_bytes: int) -> int:
    """Submit the jobs whose tick has come, of kinds that are known here; the answer is how many."""
    names = store.read(partial(queries.due_names, kinds=[kind.name for kind in kinds]), single_statement=True)
    return sum(_submit_due(store, kinds, name, max_bytes) for name in names)


def _submit_due(store: Store, kinds: Kinds, name: str, max_bytes: int) -> int:
    """One schedule's turn, in a transaction of its own: what is wrong with it keeps no other."""
    try:
        return store.write(partial(_run_ticks, kinds=kinds, name=name, max_bytes=max_bytes), bounded=True)
    except StoreLocked as error:  # somebody's open transaction keeps this tick, and no other schedule's
        _log.info("a schedule is left to the next look", schedule=name, error=str(error))
        return 0
    except StoreUnavailable:
        raise
    except PenstockError as error:
        _log.error("a schedule's job cannot be submitted", schedule=name, error=str(error), code=error.code)
        store.write(partial(_pass_over, name=name, why=f"{error.message} ({error.code})"), bounded=True)
        return 0


def _run_ticks(transaction: Transaction, kinds: Kinds, name: str, max_bytes: int) -> int:
    row = queries.lock_due(transaction, name)
    if row is None:
        return 0
    schedule = Schedule.from_json(name, row.definition)
    due = schedule.due(row.next_at, row.now)
    job = None
    for tick in due.ticks:
        job = _submit(transaction, kinds, schedule, tick, SYSTEM, max_bytes)
    queries.move_on(
        transaction,
        name,
        next_at=due.next_tick,
        last_at=due.ticks[-1] if due.ticks else None,
        job_id=None if job is None else job.id,
        error=None,
    )
    return len(due.ticks)


def _pass_over(transaction: Transaction, name: str, why: str) -> None:
    """Go on to the next tick; why this one was not submitted is kept."""
    row = queries.lock_due(transaction, name)
    if row is not None:
        next_at = Schedule.from_json(name, row.definition).first_tick(row.now)
        queries.move_on(transaction, name, next_at=next_at, last_at=None, job_id=None, error=why)


def _submit(
    transaction: Transaction, kinds: Kinds, schedule: Schedule, tick: datetime, caller: Caller, max_bytes: int
) -> Job:
    request = Request(
        owner=schedule.owner,
        caller=caller,
        title=schedule.title or schedule.name,
        priority=schedule.priority,
        unique_key=schedule.unique_key,
    )
    kind = kinds.get(schedule.kind)
    submission = submit(transaction, kind, schedule.params, request, items=None, max_bytes=max_bytes)
    if submission.answer is not SubmitOutcome.NEW:
        return submission.job
    set_run_at(transaction, submission.job.id, tick)
    return get_job(transaction, submission.job.id, SYSTEM)


def run_now(transaction: Transaction, kinds: Kinds, name: str, caller: Caller, *, max_bytes: int) -> Job:
    """Submit a schedule's job at once; its ticks stay as they are, also while it is paused."""
    row = _existing(transaction, name)
    now = current_moment(transaction)
    job = _submit(transaction, kinds, Schedule.from_json(name, row.definition), now, caller, max_bytes)
    queries.move_on(transaction, name, next_at=row.next_at, last_at=now, job_id=job.id, error=None)
    return job


def pause(transaction: Transaction, name: str) -> None:
    """No tick is run until :func:`resume`."""
    row = _existing(transaction, name)
    queries.set_paused(transaction, name, paused=True, next_at=row.next_at)


def resume(transaction: Transaction, name: str) -> None:
    """Go on with the next tick: those that came meanwhile were not wanted."""
    row = _existing(transaction, name)
    if row.is_paused:
        next_at = Schedule.from_json(name, row.definition).first_tick(current_moment(transaction))
        queries.set_paused(transaction, name, paused=False, next_at=next_at)


def remove(transaction: Transaction, name: str) -> None:
    """Forget a schedule that no program declares any more; the jobs it led to stay."""
    if not queries.delete_schedule(transaction, name):
        raise _unknown(name)


def list_schedules(transaction: Transaction) -> list[ScheduleStatus]:
    """All of them, by name."""
    return [_status(row) for row in queries.list_schedules(transaction)]


def get_schedule(transaction: Transaction, name: str) -> ScheduleStatus:
    """One of them."""
    return _status(_existing(transaction, name))


def _status(row: ScheduleRow) -> ScheduleStatus:
    return ScheduleStatus(
        schedule=Schedule.from_json(row.name, row.definition),
        is_paused=row.is_paused,
        next_at=None if row.is_paused else row.next_at,
        last_at=row.last_at,
        last_job_id=row.last_job_id,
        last_error=row.last_error,
    )


def _existing(transaction: Transaction, name: str) -> ScheduleRow:
    row = queries.lock_schedule(transaction, name)
    if row is None:
        raise _unknown(name)
    return row


def _unknown(name: str) -> InvalidInput:
    return InvalidInput(
        f"there is no schedule {name!r}; penstock schedules lists them", field="schedule", code="SCHEDULE_UNKNOWN"
    )
