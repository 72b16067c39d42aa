"""``/api/jobs``: look at jobs, stop them, read their history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.http.auth import AService, SignedIn
from penstock.http.blank_params import BlankParams
from penstock.http.errors import documented
from penstock.http.responses import Json
from penstock.http.service import Service
from penstock.http.tokens import Identity
from penstock.http.vocabularies.pipeline.translation import controllers, job_fields
from penstock.http.vocabularies.tasks.filters import Asked, next_cursor
from penstock.http.vocabularies.tasks.schemas import HistoryLine, JobKilled, JobListed, JobStatusResponse
from penstock.http.vocabularies.tasks.translation import history_line, listed, shown
from penstock.lifecycle.job import Job
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import ItemStatus, JobState
from penstock.lifecycle.transitions import actions
from penstock.operations.read_jobs import HISTORY_PAGE

routes = APIRouter(prefix="/api/jobs", tags=["jobs"])
lists = APIRouter(prefix="/api/jobs", tags=["jobs"], route_class=BlankParams)
MOST_LISTED = 100
_FAILED_SHOWN = 100
_OVER_BADLY = (JobState.FAILED, JobState.CANCELED)


@lists.get("", summary="Jobs, newest first", response_model=list[JobListed], responses=documented(401, 422, 503))
def list_jobs(
    request: Request,
    who: SignedIn,
    one: AService,
    asked: Asked,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = MOST_LISTED,
) -> Response:
    """Your own jobs; an admin sees everybody's. The `Link` header leads to the next page; the last one has none."""
    page = one.app.acting_as(who.caller).jobs.page(asked.wanted, after=asked.after, limit=limit)
    now = datetime.now(UTC)
    headers = {} if page.next is None else _link_to_next(request, cursor=next_cursor(page))
    return Json([listed(job, now) for job in page.jobs], headers=headers)


@routes.get("/{job_id}", summary="One job", response_model=JobStatusResponse, responses=documented(401, 404, 422, 503))
def get_job(job_id: UUID, who: SignedIn, one: AService) -> Response:
    """Its status, how far it is, what it came to, and why it ended."""
    return Json(job_report(one.app.acting_as(who.caller).jobs.get(job_id), who, one))


@routes.delete(
    "/{job_id}", summary="Stop a job", response_model=JobKilled, responses=documented(401, 404, 409, 422, 503)
)
def kill_job(
    job_id: UUID,
    who: SignedIn,
    one: AService,
    reason: Annotated[str | None, Query(description="Why; kept and shown.", max_length=2000)] = None,
) -> Response:
    """No new item starts, running ones are stopped, and the history says who did it and why."""
    job = one.app.acting_as(who.caller).jobs.cancel(job_id, reason=reason or "User requested cancellation")
    return Json({**job_report(job, who, one), "message": "Job cancelled"})


@routes.get(
    "/{job_id}/history",
    summary="A job's history",
    response_model=list[HistoryLine],
    responses=documented(401, 404, 422, 503),
)
def get_history(
    request: Request,
    job_id: UUID,
    who: SignedIn,
    one: AService,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Only lines behind this sequence number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=HISTORY_PAGE)] = HISTORY_PAGE,
) -> Response:
    """Every transition: from where to where, by whom, why and when.

    The `Link` header leads to the next page; the last one has none.
    """
    lines = one.app.acting_as(who.caller).jobs.history(job_id, after=after, limit=limit + 1)
    page, headers = lines[:limit], {}
    if len(lines) > limit:
        headers = _link_to_next(request, after=page[-1].sequence)
    return Json([history_line(entry) for entry in page], headers=headers)


def _link_to_next(request: Request, **place: object) -> dict[str, str]:
    return {"Link": f'<{request.url.include_query_params(**place)}>; rel="next"'}


def job_report(job: Job, who: Identity, one: Service) -> dict[str, Any]:
    """A job with all that belongs to it; what takes another look into the database is looked up when it matters."""
    caller = who.caller
    ending = one.app.acting_as(caller).jobs.last_change_to(job.id, job.state) if job.state in _OVER_BADLY else None
    failed = None
    if job.progress.failed and job.finished:
        failed = one.app.acting_as(caller).items.list(job.id, statuses=[ItemStatus.ERROR], limit=_FAILED_SHOWN)
    over_with_errors = job.finished and (job.state is JobState.FAILED or job.progress.failed)
    trace = one.app.acting_as(caller).jobs.stack_trace(job.id) if who.admin and over_with_errors else None
    policy = one.app.kinds.get(job.kind).policy if job.kind in one.app.kinds else None
    offered = actions(job.state, caller.actor, reprocessable=policy is not None and policy.reprocess)
    answer = shown(job, datetime.now(UTC), offered=offered, ending=ending, failed_items=failed, stack_trace=trace)
    chosen = controllers(job, one.figures.lanes.get().value if job.state is JobState.RUNNING else ())
    return {**answer, **job_fields(job), **_mailbox(job, policy), "controllers": chosen}


def _mailbox(job: Job, policy: Policy | None) -> dict[str, Any]:
    """Does a result wait for its owner to use it, and until when?"""
    kept = None if policy is None else policy.abandon_after
    if kept is None:
        return {"has_mailbox": False, "expires_at": None}
    completed = job.completed_at if job.state is JobState.SUCCEEDED else None
    return {"has_mailbox": True, "expires_at": None if completed is None else completed + timedelta(seconds=kept)}
