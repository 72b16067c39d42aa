"""Rows into values: the one place that knows both the columns and the dataclasses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from penstock.lifecycle.job import ClaimedItem, HistoryEntry, Item, Job, Progress
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import Actor, ErrorType, ItemRole, ItemStatus, JobState, KilledBy, Phase, TrackingEngine
from penstock.lifecycle.times import Pace, Times
from penstock.store.queries.claim import TakenAgain, TakenItem, TakenOfJob
from penstock.store.queries.line import PickedJob


class JobRow(NamedTuple):
    """What is read of a job; a list without payloads has None in their places."""

    id: UUID
    kind: str
    title: str | None
    user_id: str | None
    state: str
    phase: str
    run: int
    priority: int
    params: JSON
    result: JSON
    unique_key: str | None
    leader_id: UUID | None
    total_items: int
    processed_items: int
    failed_items: int
    not_found_items: int
    skipped_items: int
    attempts: int
    retries: int
    deaths: int
    max_retries: int
    last_error: str | None
    error_code: str | None
    error_type: str | None
    error_class: str | None
    failed_phase: str | None
    killed_by: str | None
    killed_reason: str | None
    message: str | None
    file_id: UUID | None
    ip_address: str | None
    last_heartbeat: datetime | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    committed_at: datetime | None
    abandoned_at: datetime | None
    canceled_at: datetime | None
    updated_at: datetime
    state_since: datetime | None
    waiting_seconds: float
    active_seconds: float
    paused_seconds: float
    recent_items: float
    recent_seconds: float
    recent_at: datetime | None
    engine: str | None
    run_at: datetime | None


class HistoryRow(NamedTuple):
    """A line of a job's history."""

    sequence: int
    run: int
    from_state: str | None
    to_state: str
    actor: str
    actor_id: str | None
    reason: str | None
    data: JSON
    at: datetime


class WholeItemRow(NamedTuple):
    """An item with all that is kept of it."""

    id: int
    job_id: UUID
    role: str
    position: int
    status: str
    attempts: int
    deaths: int
    input_json: JSON
    normalized_json: JSON
    result_json: JSON
    last_error: str | None
    error_code: str | None
    traceback: str | None
    locked_by: str | None
    locked_at: datetime | None
    ready_at: datetime | None
    updated_at: datetime


def job_from(row: JobRow) -> Job:
    """A job's row as a value."""
    return Job(
        id=row.id,
        kind=row.kind,
        title=row.title,
        user_id=row.user_id,
        state=JobState(row.state),
        phase=Phase(row.phase),
        run=row.run,
        priority=row.priority,
        params=row.params,
        result=row.result,
        unique_key=row.unique_key,
        leader_id=row.leader_id,
        progress=Progress(
            total=row.total_items,
            processed=row.processed_items,
            failed=row.failed_items,
            not_found=row.not_found_items,
            skipped=row.skipped_items,
        ),
        attempts=row.attempts,
        retries=row.retries,
        deaths=row.deaths,
        max_retries=row.max_retries,
        last_error=row.last_error,
        error_code=row.error_code,
        error_type=None if row.error_type is None else ErrorType(row.error_type),
        error_class=row.error_class,
        failed_phase=None if row.failed_phase is None else Phase(row.failed_phase),
        killed_by=None if row.killed_by is None else KilledBy(row.killed_by),
        killed_reason=row.killed_reason,
        message=row.message,
        file_id=row.file_id,
        ip_address=row.ip_address,
        last_heartbeat=row.last_heartbeat,
        created_at=row.created_at,
        queued_at=row.queued_at,
        started_at=row.started_at,
        completed_at=row.completed_at,
        committed_at=row.committed_at,
        abandoned_at=row.abandoned_at,
        canceled_at=row.canceled_at,
        updated_at=row.updated_at,
        state_since=row.state_since,
        times=Times(row.waiting_seconds, row.active_seconds, row.paused_seconds),
        pace=Pace(row.recent_items, row.recent_seconds, row.recent_at),
        engine=None if row.engine is None else TrackingEngine(row.engine),
        run_at=row.run_at,
    )


def item_from(row: WholeItemRow) -> Item:
    """An item's row as a value."""
    return Item(
        id=row.id,
        job_id=row.job_id,
        role=ItemRole(row.role),
        position=row.position,
        status=ItemStatus(row.status),
        attempts=row.attempts,
        deaths=row.deaths,
        input=row.input_json,
        normalized=row.normalized_json,
        result=row.result_json,
        last_error=row.last_error,
        error_code=row.error_code,
        traceback=row.traceback,
        locked_by=row.locked_by,
        locked_at=row.locked_at,
        ready_at=row.ready_at,
        updated_at=row.updated_at,
    )


def history_entry_from(row: HistoryRow) -> HistoryEntry:
    """A history row as a value."""
    return HistoryEntry(
        sequence=row.sequence,
        run=row.run,
        from_state=None if row.from_state is None else JobState(row.from_state),
        to_state=JobState(row.to_state),
        actor=Actor(row.actor),
        actor_id=row.actor_id,
        reason=row.reason,
        data=row.data,
        at=row.at,
    )


_ROLES = {role.value: role for role in ItemRole}


def claimed_from(
    rows: Sequence[TakenItem | TakenOfJob | TakenAgain], job: PickedJob, kind: str, lease: UUID
) -> list[ClaimedItem]:  # fmt: skip
    """Items just taken from one job; the input of a single step is its job's params."""
    job_id, user_id, run, max_retries, params, single_step = (
        job.id, job.user_id, job.run, job.max_retries, job.params, job.single_step,
    )  # fmt: skip
    return [
        ClaimedItem(
            row.id, job_id, kind, user_id, run, _ROLES[row.role], row.position, row.attempts, max_retries,
            params if single_step else row.input_json, params, lease, row.normalized_json,
            row.not_found_attempts if type(row) is TakenAgain else 0,
            row.earlier_not_found if type(row) is TakenAgain else 0,
        )
        for row in rows
    ]  # fmt: skip
