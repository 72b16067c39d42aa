"""Looking: a job, a page of jobs, its items, its history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from penstock.errors import JobNotFound
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import HistoryEntry, Item, Job
from penstock.lifecycle.states import ItemStatus, JobState
from penstock.store.engine import Transaction
from penstock.store.statements import inspect as statements
from penstock.store.translation import history_entry_from, item_from, job_from


def not_found(job_id: UUID) -> JobNotFound:
    """The same words whether there is no such job or it belongs to somebody else."""
    return JobNotFound(f"there is no job {job_id}")


def get_job(transaction: Transaction, job_id: UUID, caller: Caller) -> Job:
    """One job as it stands now."""
    named = {"the_job_id": job_id, "the_caller_id": caller.id}
    row = transaction.run(statements.job_by_id(transaction.ways, caller.sight), named).one_or_none()
    if row is None:
        raise not_found(job_id)
    return job_from(row)


@dataclass(frozen=True, slots=True)
class After:
    """The place in a listing behind which the next page begins."""

    created_at: datetime
    id: UUID


def list_jobs(
    transaction: Transaction,
    caller: Caller,
    *,
    states: Iterable[JobState] | None = None,
    kind: str | None = None,
    after: After | None = None,
    limit: int = 100,
    payloads: bool = False,
) -> list[Job]:
    """A page of jobs, newest first, without their payloads unless those are wanted."""
    parameters: dict[str, Any] = {"the_limit": limit, "the_caller_id": caller.id}
    if states is not None:
        parameters["the_states"] = [state.value for state in states]
    if kind is not None:
        parameters["the_kind"] = kind
    if after is not None:
        parameters |= {"the_after": after.created_at, "the_after_id": after.id}
    statement = statements.list_jobs(
        transaction.ways, caller.sight, states=states is not None, kind=kind is not None, after=after is not None,
        payloads=payloads,
    )  # fmt: skip
    return [job_from(row) for row in transaction.run(statement, parameters)]


def history(transaction: Transaction, job_id: UUID, *, after: int = 0, limit: int = 1000) -> list[HistoryEntry]:
    """A job's history behind line ``after``."""
    parameters = {"the_job_id": job_id, "the_after": after, "the_limit": limit}
    return [history_entry_from(row) for row in transaction.run(statements.history_of(transaction.ways), parameters)]


def items(
    transaction: Transaction,
    job_id: UUID,
    *,
    statuses: Iterable[ItemStatus] | None = None,
    after: int = 0,
    limit: int = 1000,
) -> list[Item]:
    """A page of a job's items behind position ``after``."""
    parameters: dict[str, Any] = {"the_job_id": job_id, "the_after": after, "the_limit": limit}
    if statuses is not None:
        parameters["the_statuses"] = [status.value for status in statuses]
    statement = statements.items_of(transaction.ways, statuses=statuses is not None)
    return [item_from(row) for row in transaction.run(statement, parameters)]


def stack_trace(transaction: Transaction, job_id: UUID) -> str | None:
    """Where in its code the last step or item of a job failed, if it says so."""
    text: str | None = transaction.run(statements.trace_of(transaction.ways), {"the_job_id": job_id}).scalar()
    return text


def count_by_state(transaction: Transaction) -> dict[tuple[str, JobState], int]:
    """How many jobs there are of each kind in each state."""
    rows = transaction.run(statements.count_by_state(transaction.ways))
    return {(kind, JobState(state)): count for kind, state, count in rows}


def marks(transaction: Transaction, job_ids: Iterable[UUID]) -> dict[UUID, tuple[datetime, int]]:
    """For each of these jobs something that changes whenever the job does; for whoever watches many of them."""
    rows = transaction.run(statements.marks_of(transaction.ways), {"the_jobs": list(job_ids)})
    return {row.id: (row.updated_at, row.event_sequence) for row in rows}
