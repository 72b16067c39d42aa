"""Recording new jobs: the row of each, its first item, and the first line of its history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from penstock.lifecycle.job import Job, Progress
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import decode
from penstock.lifecycle.states import ItemRole, JobState, Phase
from penstock.lifecycle.times import Pace, Times
from penstock.operations.request import Request
from penstock.store.queries import submit as queries
from penstock.store.queries.submit import CommonColumns, FirstItem, NewJob
from penstock.store.transaction import Transaction

_NO_TIMES, _NO_PACE = Times(), Pace()


def record_job(transaction: Transaction, kind: Kind, new: NewJob, request: Request, *, with_items: bool) -> Job:
    """One job without a unique key, with its first item unless items are given with it."""
    common, first_item = _columns(kind, request, with_items=with_items), _first_item(kind, with_items=with_items)
    recorded_at = queries.insert_job(transaction, new, common, first_item, request.caller)
    return job_as_recorded(kind, request, new, recorded_at)


def record_row_unless_taken(
    transaction: Transaction, kind: Kind, new: NewJob, request: Request, *, with_items: bool
) -> datetime | None:
    """The row of one job with a unique key alone; None when the key is in use."""
    return queries.insert_job_unless_taken(transaction, new, _columns(kind, request, with_items=with_items))


def record_beginnings(transaction: Transaction, kind: Kind, new: NewJob, request: Request, *, with_items: bool) -> None:
    """The first item and the first line of history of a job whose row is there."""
    common, first_item = _columns(kind, request, with_items=with_items), _first_item(kind, with_items=with_items)
    queries.insert_beginnings(transaction, new, common, first_item, request.caller)


def record_jobs(transaction: Transaction, kind: Kind, params: Sequence[str], request: Request) -> list[UUID]:
    """Many jobs that differ in nothing but their params, which are JSON texts; the answer is their ids."""
    new = [NewJob(uuid7(), text) for text in params]
    common, first_item = _columns(kind, request, with_items=False), _first_item(kind, with_items=False)
    queries.insert_jobs(transaction, new, common, first_item, request.caller)
    return [job.id for job in new]


def record_follower(transaction: Transaction, kind: Kind, new: NewJob, request: Request, *, leader_id: UUID) -> None:
    """A queued job that has no items of its own, because another one does the work, or has done it."""
    common = _columns(kind, request, with_items=True)._replace(leader_id=leader_id, state=JobState.QUEUED.value)
    queries.insert_jobs(transaction, [new], common, None, request.caller)


def job_as_recorded(kind: Kind, request: Request, new: NewJob, now: datetime) -> Job:
    """The job as it was just recorded; reading it back would be one more round trip."""
    return Job(
        id=new.id,
        kind=kind.name,
        title=request.kept_title,
        user_id=request.owner,
        state=_state(request),
        phase=Phase.INIT,
        run=1,
        priority=_priority(kind, request),
        params=decode(new.params),
        result=None,
        unique_key=request.unique_key,
        leader_id=None,
        progress=Progress(total=1 if kind.plan is None else 0, processed=0, failed=0, not_found=0, skipped=0),
        attempts=0,
        retries=0,
        deaths=0,
        max_retries=kind.policy.retries,
        last_error=None,
        error_code=None,
        error_type=None,
        error_class=None,
        failed_phase=None,
        killed_by=None,
        killed_reason=None,
        message=None,
        file_id=request.file_id,
        ip_address=request.ip_address,
        last_heartbeat=None,
        created_at=now,
        queued_at=None if request.is_held else now,
        started_at=None,
        completed_at=None,
        committed_at=None,
        abandoned_at=None,
        canceled_at=None,
        updated_at=now,
        state_since=None,
        times=_NO_TIMES,
        pace=_NO_PACE,
    )


def _columns(kind: Kind, request: Request, *, with_items: bool) -> CommonColumns:
    """What the request and the kind say of a job, and how its items are handed out: its plan first, its only step, or
    items given with it.
    """
    planned = with_items or kind.plan is None
    return CommonColumns(
        kind=kind.name,
        user_id=request.owner,
        state=_state(request).value,
        priority=_priority(kind, request),
        unique_key=request.unique_key,
        leader_id=None,
        single_step=kind.single_step and not with_items,
        planned=planned,
        has_finalizer=kind.finalize is not None,
        total_items=0 if with_items or not planned else 1,
        last_claimed=0 if planned else -1,
        last_claimable=1 if planned and not with_items else 0,
        max_retries=kind.policy.retries,
        file_id=request.file_id,
        ip_address=request.ip_address,
        title=request.kept_title,
    )


def _first_item(kind: Kind, *, with_items: bool) -> FirstItem | None:
    if with_items:
        return None
    if kind.plan is None:
        return FirstItem(ItemRole.ITEM, 1, has_input=not kind.single_step)
    return FirstItem(ItemRole.PLAN, 0, has_input=False)


def _state(request: Request) -> JobState:
    return JobState.CREATED if request.is_held else JobState.QUEUED


def _priority(kind: Kind, request: Request) -> int:
    return kind.policy.priority if request.priority is None else request.priority
