"""Rows into values: the one place that knows both the columns and the dataclasses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from penstock.lifecycle.job import ClaimedItem, HistoryEntry, Item, Job, Progress
from penstock.lifecycle.states import Actor, ErrorType, ItemRole, ItemStatus, JobState, KilledBy, Phase
from penstock.store.queries.claim import ClaimedRow, JobOfClaim, TakenItem, TakenOfJob
from penstock.store.queries.line import PickedJob


def job_from(row: Any) -> Job:
    """A job's row as a value; a listing's row has no payloads."""
    data = row._asdict()
    return Job(
        id=data["id"],
        kind=data["kind"],
        title=data["title"],
        user_id=data["user_id"],
        state=JobState(data["state"]),
        phase=Phase(data["phase"]),
        run=data["run"],
        priority=data["priority"],
        params=data.get("params"),
        result=data.get("result"),
        unique_key=data["unique_key"],
        leader_id=data["leader_id"],
        progress=Progress(
            total=data["total_items"],
            processed=data["processed_items"],
            failed=data["failed_items"],
            not_found=data["not_found_items"],
            skipped=data["skipped_items"],
        ),
        attempts=data["attempts"],
        retries=data["retries"],
        deaths=data["deaths"],
        max_retries=data["max_retries"],
        last_error=data["last_error"],
        error_code=data["error_code"],
        error_type=None if data["error_type"] is None else ErrorType(data["error_type"]),
        failed_phase=None if data["failed_phase"] is None else Phase(data["failed_phase"]),
        killed_by=None if data["killed_by"] is None else KilledBy(data["killed_by"]),
        killed_reason=data["killed_reason"],
        message=data["message"],
        file_id=data["file_id"],
        ip_address=data["ip_address"],
        last_heartbeat=data["last_heartbeat"],
        created_at=data["created_at"],
        queued_at=data["queued_at"],
        started_at=data["started_at"],
        completed_at=data["completed_at"],
        committed_at=data["committed_at"],
        abandoned_at=data["abandoned_at"],
        canceled_at=data["canceled_at"],
        updated_at=data["updated_at"],
    )


def item_from(row: Any) -> Item:
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


def history_entry_from(row: Any) -> HistoryEntry:
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


_JOB_NUMBER, _IN_ORDER = attrgetter("job_number"), attrgetter("job_number", "position")
_ROLES = {role.value: role for role in ItemRole}


def claimed_from(
    rows: Sequence[TakenItem | TakenOfJob], job: PickedJob, kind: str, lease: UUID
) -> list[ClaimedItem]:  # fmt: skip
    """Items just taken from one job; the input of a single step is its job's params."""
    job_id, user_id, run, max_retries, params, single_step = (
        job.id, job.user_id, job.run, job.max_retries, job.params, job.single_step,
    )  # fmt: skip
    return [
        ClaimedItem(
            row.id, job_id, kind, user_id, run, _ROLES[row.role], row.position, row.attempts, max_retries,
            params if single_step else row.input_json, params, lease, row.normalized_json,
        )
        for row in rows
    ]  # fmt: skip


def claimed_together(rows: Sequence[ClaimedRow], kind: str, lease: UUID) -> tuple[list[ClaimedItem], bool]:
    """Items taken by one statement, in the order of their jobs and positions, and whether any of the jobs has more."""
    items: list[ClaimedItem] = []
    any_more = False
    for _, rows_of_job in groupby(sorted(rows, key=_IN_ORDER), _JOB_NUMBER):
        taken = list(rows_of_job)
        job = JobOfClaim._make(taken[0].job or ())
        job_id, user_id, run, max_retries, params, single_step = (
            UUID(job.id), job.user_id, job.run, job.max_retries, job.params, job.single_step,
        )  # fmt: skip
        any_more = any_more or taken[-1].position < job.last_claimable
        items += [
            ClaimedItem(
                item_id, job_id, kind, user_id, run, _ROLES[role], position, attempts, max_retries,
                params if single_step else item_input, params, lease, normalized,
            )
            for item_id, role, position, attempts, item_input, normalized, _, _ in taken
        ]  # fmt: skip
    return items, any_more
