"""What jobs count, and become, after the outcomes of their items were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Insert,
    Integer,
    Select,
    String,
    Text,
    Update,
    bindparam,
    case,
    insert,
    literal,
    null,
    select,
    true,
    update,
)

from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ItemRole, ItemStatus, JobState, Phase
from penstock.lifecycle.times import RECENT_ITEMS, RECENT_SECONDS
from penstock.lifecycle.transitions import FAIL, RETRY, SUCCEED
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.change_state import ChangedJob, change_state
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.queries.visibility import by_ids
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, Moment


class CountedJob(NamedTuple):
    """A job as it is before the outcomes of its items are counted."""

    id: UUID
    kind: str
    state: str
    single_step: bool
    planned: bool
    has_finalizer: bool
    total_items: int
    processed_items: int
    last_claimable: int


def lock_jobs(transaction: Transaction, job_ids: Sequence[UUID]) -> list[CountedJob]:
    """The jobs the outcomes belong to, locked in the order of their ids: two recorders cannot wait for each other."""
    return transaction.fetch(CountedJob, _lock_jobs(transaction.dialect), {"job_ids": job_ids})


@built_once
def _lock_jobs(dialect: Dialect) -> Select[Any]:
    return (
        select(*(jobs.c[name] for name in CountedJob._fields))
        .where(by_ids(dialect))
        .order_by(jobs.c.id)
        .with_for_update(key_share=True)
    )


_COUNT_TYPES: dict[str, Any] = {
    "id": Identifier(),
    "processed": Integer(),
    "failed": Integer(),
    "not_found": Integer(),
    "skipped": Integer(),
    "returned": Integer(),
}
"""What every row about a job begins with: how many of its items ended, and how, and how many came back."""


def _new_counters(dialect: Dialect, rows: FromClause) -> dict[str, ColumnElement[Any]]:
    return {
        "processed_items": jobs.c.processed_items + rows.c.processed,
        "failed_items": jobs.c.failed_items + rows.c.failed,
        "not_found_items": jobs.c.not_found_items + rows.c.not_found,
        "skipped_items": jobs.c.skipped_items + rows.c.skipped,
        "returned_items": jobs.c.returned_items + rows.c.returned,
        "last_heartbeat": dialect.now(),
    }


NO_PACE = {"recent_items": 0.0, "recent_seconds": 0.0}
"""Of a job that goes on after a pause, or in a new run: how fast it went before says nothing."""


class JobCounts(NamedTuple):
    """What the outcomes add to a job that goes on as it is, and when it has something to hand out again."""

    id: UUID
    processed: int
    failed: int
    not_found: int
    skipped: int
    returned: int
    next_claim_at: datetime | None


_COUNTS = HandedRows("counts", JobCounts, **_COUNT_TYPES, next_claim_at=Moment())


def count_outcomes(transaction: Transaction, counts: Sequence[JobCounts]) -> None:
    """Add up what ended and what came back; a job with something to hand out gets its turn, if it is one that runs."""
    transaction.execute(_count_outcomes(transaction.dialect), _COUNTS.parameters(transaction.dialect, counts))


@built_once
def _count_outcomes(dialect: Dialect) -> Update:
    rows = _COUNTS.table(dialect)
    flows = jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])
    sooner = case((jobs.c.next_claim_at < rows.c.next_claim_at, jobs.c.next_claim_at), else_=rows.c.next_claim_at)
    return (
        update(jobs)
        .where(jobs.c.id == rows.c.id)
        .values(
            next_claim_at=case((flows & rows.c.next_claim_at.is_not(None), sooner), else_=jobs.c.next_claim_at),
            updated_at=dialect.now(),
            **_new_counters(dialect, rows),
            **_new_pace(dialect, rows),
        )
    )


_ANY_GAP = 1e12


def _new_pace(dialect: Dialect, rows: FromClause) -> dict[str, ColumnElement[Any]]:
    """What ended, and since when, added to what is known of the recent past, which counts a little less by it.

    It is forgotten by the seconds or by the items, whichever forgets less: so a job whose items take minutes knows its
    pace too. A gap is counted as at most :data:`RECENT_SECONDS` longer than all that is known, for in a very long one
    nobody worked; the first is counted as it is.
    """
    job, count = jobs.c, rows.c.processed
    gap = dialect.seconds_between(job.recent_at, dialect.now())
    longest = case((job.recent_seconds > 0, job.recent_seconds + RECENT_SECONDS), else_=_ANY_GAP)
    seconds = dialect.least(gap, longest)
    by_time, by_items = RECENT_SECONDS / (RECENT_SECONDS + seconds), RECENT_ITEMS / (RECENT_ITEMS + count)
    weight = dialect.greatest(by_time, by_items)
    return {
        "recent_items": case((count > 0, job.recent_items * weight + count), else_=job.recent_items),
        "recent_seconds": case((count > 0, job.recent_seconds * weight + seconds), else_=job.recent_seconds),
        "recent_at": case((count > 0, dialect.now()), else_=job.recent_at),
    }


class SucceededJob(NamedTuple):
    """The last counts of a job, and its result as JSON text."""

    id: UUID
    processed: int
    failed: int
    not_found: int
    skipped: int
    returned: int
    result: str | None


_SUCCEEDED = HandedRows("succeeded", SucceededJob, **_COUNT_TYPES, result=Text())


def succeed_jobs(transaction: Transaction, succeeded: Sequence[SucceededJob]) -> list[ChangedJob]:
    """SUCCEED, with the result and the last counts."""
    parameters = _SUCCEEDED.parameters(transaction.dialect, succeeded)
    return transaction.fetch(ChangedJob, _succeed_jobs(transaction.dialect), parameters)


@built_once
def _succeed_jobs(dialect: Dialect) -> Update:
    rows = _SUCCEEDED.table(dialect)
    return change_state(
        dialect,
        SUCCEED,
        jobs.c.id == rows.c.id,
        {"result": dialect.json(rows.c.result), **_new_counters(dialect, rows)},
    )


class FailedJob(NamedTuple):
    """The last counts of a job, what went wrong, where, and who killed it if somebody did."""

    id: UUID
    processed: int
    failed: int
    not_found: int
    skipped: int
    returned: int
    error: str | None
    code: str | None
    error_type: str | None
    error_class: str | None
    phase: str
    killed_by: str | None


_ERROR_TYPES: dict[str, Any] = {"error": Text(), "code": String(), "error_type": String(), "error_class": String()}
_FAILED = HandedRows("failed", FailedJob, **_COUNT_TYPES, **_ERROR_TYPES, phase=String(), killed_by=String())


def fail_jobs(transaction: Transaction, failed: Sequence[FailedJob]) -> list[ChangedJob]:
    """FAIL, with what went wrong."""
    parameters = _FAILED.parameters(transaction.dialect, failed)
    return transaction.fetch(ChangedJob, _fail_jobs(transaction.dialect), parameters)


@built_once
def _fail_jobs(dialect: Dialect) -> Update:
    rows = _FAILED.table(dialect)
    return change_state(
        dialect,
        FAIL,
        jobs.c.id == rows.c.id,
        {
            "failed_phase": rows.c.phase,
            "killed_by": rows.c.killed_by,
            "killed_reason": case((rows.c.killed_by.is_not(None), rows.c.error), else_=null()),
            **_failure(rows),
            **_new_counters(dialect, rows),
        },
    )


def _failure(rows: FromClause) -> dict[str, ColumnElement[Any]]:
    return {
        "last_error": rows.c.error,
        "error_code": rows.c.code,
        "error_type": rows.c.error_type,
        "error_class": rows.c.error_class,
    }


class RetriedJob(NamedTuple):
    """The counts of a job that is tried again, what went wrong, and when its backoff has passed."""

    id: UUID
    processed: int
    failed: int
    not_found: int
    skipped: int
    returned: int
    error: str | None
    code: str | None
    error_type: str | None
    error_class: str | None
    next_claim_at: datetime | None


_RETRIED = HandedRows("retried", RetriedJob, **_COUNT_TYPES, **_ERROR_TYPES, next_claim_at=Moment())


def retry_jobs(transaction: Transaction, retried: Sequence[RetriedJob]) -> list[ChangedJob]:
    """RETRY: the next turn is when the backoff has passed."""
    parameters = _RETRIED.parameters(transaction.dialect, retried)
    return transaction.fetch(ChangedJob, _retry_jobs(transaction.dialect), parameters)


@built_once
def _retry_jobs(dialect: Dialect) -> Update:
    rows = _RETRIED.table(dialect)
    return change_state(
        dialect,
        RETRY,
        jobs.c.id == rows.c.id,
        {
            "next_claim_at": rows.c.next_claim_at,
            "retries": jobs.c.retries + 1,
            **_failure(rows),
            **_new_counters(dialect, rows),
        },
    )


def open_planned(transaction: Transaction, job_ids: Sequence[UUID]) -> None:
    """The plan is complete: what is not handed out yet is all there is."""
    transaction.execute(_open_planned(transaction.dialect), {"job_ids": job_ids})


@built_once
def _open_planned(dialect: Dialect) -> Update:
    return (
        update(jobs)
        .where(by_ids(dialect))
        .values(
            planned=true(),
            last_claimable=jobs.c.total_items,
            phase=Phase.PROCESSING.value,
            recent_at=dialect.now(),
            next_claim_at=case(
                ((jobs.c.state == JobState.RUNNING.value) & (jobs.c.last_claimed < jobs.c.total_items), dialect.now()),
                else_=jobs.c.next_claim_at,
            ),
            updated_at=dialect.now(),
        )
    )


def add_finalize_items(transaction: Transaction, job_ids: Sequence[UUID]) -> None:
    """The one item that finalizes, behind the last of the others; a second one cannot be: the position is taken."""
    transaction.execute(_add_finalize_items(transaction.dialect), {"job_ids": job_ids})


@built_once
def _add_finalize_items(dialect: Dialect) -> Insert:
    source = select(
        jobs.c.id,
        jobs.c.user_id,
        jobs.c.kind,
        literal(ItemRole.FINALIZE.value),
        jobs.c.total_items + 1,
        literal(ItemStatus.PENDING.value),
        dialect.now(),
    ).where(by_ids(dialect))
    columns = ["job_id", "user_id", "kind", "role", "position", "status", "updated_at"]
    return insert(job_items).from_select(columns, source)


def open_finalize(transaction: Transaction, job_ids: Sequence[UUID]) -> None:
    """The finalize item may be handed out."""
    transaction.execute(_open_finalize(transaction.dialect), {"job_ids": job_ids})


@built_once
def _open_finalize(dialect: Dialect) -> Update:
    return (
        update(jobs)
        .where(by_ids(dialect))
        .values(
            last_claimable=jobs.c.total_items + 1,
            phase=Phase.FINALIZING.value,
            next_claim_at=dialect.now(),
            updated_at=dialect.now(),
        )
    )


class DecidingItem(NamedTuple):
    """What the item ended as that decides what its job becomes."""

    role: str
    status: str
    result_json: JSON
    last_error: str | None
    error_code: str | None
    error_type: str | None
    error_class: str | None
    killed_by: str | None


def deciding_item(transaction: Transaction, job_id: UUID, position: int) -> DecidingItem | None:
    """The plan, the only, or the finalize item of one job, by its position."""
    parameters = {"job_id": job_id, "position": position}
    return transaction.fetch_one(DecidingItem, _deciding_item(transaction.dialect), parameters)


@built_once
def _deciding_item(_: Dialect) -> Select[Any]:
    return select(*(job_items.c[name] for name in DecidingItem._fields)).where(
        job_items.c.job_id == bindparam("job_id", type_=Identifier),
        job_items.c.position == bindparam("position", type_=Integer),
    )
