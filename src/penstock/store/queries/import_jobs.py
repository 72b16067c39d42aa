"""Recording jobs that another system has worked off, with the history they had there."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Insert, Integer, String, Text, bindparam, insert, literal

from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_events, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, Moment


class ImportedJob(NamedTuple):
    """A job that is over, as its row is to be; its payloads are JSON text."""

    id: UUID
    kind: str
    user_id: str | None
    state: str
    previous_state: str
    unique_key: str | None
    params: str
    result: str
    last_error: str | None
    error_code: str | None
    error_type: str | None
    failed_phase: str | None
    killed_by: str | None
    event_sequence: int
    created_at: datetime
    queued_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    committed_at: datetime | None
    abandoned_at: datetime | None
    canceled_at: datetime | None
    updated_at: datetime


class ImportedEvent(NamedTuple):
    """A line of its history."""

    job_id: UUID
    sequence: int
    from_state: str | None
    to_state: str
    actor: str
    reason: str
    at: datetime


_JOB_TYPES: dict[str, Any] = {
    "id": Identifier(),
    "kind": String(),
    "user_id": String(),
    "state": String(),
    "previous_state": String(),
    "unique_key": String(),
    "last_error": Text(),
    "error_code": String(),
    "error_type": String(),
    "failed_phase": String(),
    "killed_by": String(),
    "event_sequence": Integer(),
    "created_at": Moment,
    "queued_at": Moment,
    "started_at": Moment,
    "completed_at": Moment,
    "committed_at": Moment,
    "abandoned_at": Moment,
    "canceled_at": Moment,
    "updated_at": Moment,
}


def insert_past_job(transaction: Transaction, job: ImportedJob) -> bool:
    """One job that is over, without items; False when its id is known already."""
    return bool(transaction.values(UUID, _insert_past_job(transaction.dialect), job._asdict()))


@built_once
def _insert_past_job(dialect: Dialect) -> Insert:
    columns = {name: bindparam(name, type_=type_) for name, type_ in _JOB_TYPES.items()}
    payloads = {name: dialect.json(bindparam(name, type_=Text)) for name in ("params", "result")}
    shape = {"single_step": literal(False), "phase": literal("finalizing")}
    return dialect.insert_unless_taken(jobs).values(**columns, **payloads, **shape).returning(jobs.c.id)


def insert_past_event(transaction: Transaction, event: ImportedEvent) -> None:
    """One line of its history."""
    transaction.execute(_insert_past_event(transaction.dialect), event._asdict())


@built_once
def _insert_past_event(_: Dialect) -> Insert:
    return insert(job_events).values(
        job_id=bindparam("job_id", type_=Identifier),
        sequence=bindparam("sequence", type_=Integer),
        from_state=bindparam("from_state", type_=String),
        to_state=bindparam("to_state", type_=String),
        actor=bindparam("actor", type_=String),
        reason=bindparam("reason", type_=Text),
        at=bindparam("at", type_=Moment),
    )
