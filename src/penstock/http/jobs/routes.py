"""``/api/jobs``: look at jobs and read their history."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from penstock.http.auth import AService, SignedIn
from penstock.http.blank_params import BlankParams
from penstock.http.errors import documented
from penstock.http.jobs.filters import APageRequest, next_cursor
from penstock.http.jobs.report import history_line, job_listed, worker_health
from penstock.http.jobs.schemas import HistoryLine, JobListed, JobSamples, JobStatusResponse, WorkerHealth
from penstock.http.jobs.status import status_of_report
from penstock.http.pagination import link_to_next
from penstock.http.responses import Json
from penstock.http.routing import Router
from penstock.http.system.report import lane_setting
from penstock.operations.job_report import read_report
from penstock.operations.read_jobs import HISTORY_PAGE

routes = Router(prefix="/api/jobs", tags=["jobs"])
lists = Router(prefix="/api/jobs", tags=["jobs"], route_class=BlankParams)
MAX_LISTED = 100
MAX_SAMPLES = 300


@lists.get("", summary="Jobs, newest first", response_model=list[JobListed], responses=documented(401, 422, 503))
def list_jobs(
    request: Request,
    who: SignedIn,
    service: AService,
    page_request: APageRequest,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = MAX_LISTED,
) -> Response:
    """Your own jobs; an admin sees everybody's. The `Link` header leads to the next page; the last one has none."""
    page = service.app.acting_as(who.caller).jobs.page(page_request.job_filter, after=page_request.after, limit=limit)
    now = service.app.store.current_time()
    headers = {} if page.next is None else link_to_next(request, cursor=next_cursor(page))
    return Json([job_listed(job, now) for job in page.jobs], headers=headers)


@lists.get(
    "/health", summary="Is there anybody who works?", response_model=WorkerHealth, responses=documented(401, 422, 503)
)
def get_worker_health(_who: SignedIn, service: AService) -> Response:
    """How many workers there are, and how many items they hold; kept for some seconds."""
    return Json(worker_health(service.stats.workers.get().value))


@routes.get("/{job_id}", summary="One job", response_model=JobStatusResponse, responses=documented(401, 404, 422, 503))
def get_job(job_id: UUID, who: SignedIn, service: AService) -> Response:
    """Its status, how far it is, what it came to, and why it ended."""
    report = read_report(service.app.store, job_id, who.caller, with_trace=who.admin)
    return Json(status_of_report(report, who, service))


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
    service: AService,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Only lines behind this sequence number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=HISTORY_PAGE)] = HISTORY_PAGE,
) -> Response:
    """Every transition: from where to where, by whom, why and when.

    The `Link` header leads to the next page; the last one has none.
    """
    lines = service.app.acting_as(who.caller).jobs.history(job_id, after=after, limit=limit + 1)
    page, headers = lines[:limit], {}
    if len(lines) > limit:
        headers = link_to_next(request, after=page[-1].sequence)
    return Json([history_line(entry) for entry in page], headers=headers)


@routes.get(
    "/{job_id}/samples",
    summary="How a job's workers were set",
    response_model=JobSamples,
    responses=documented(401, 404, 422, 503),
)
def get_samples(job_id: UUID, who: SignedIn, service: AService) -> Response:
    """Samples of the job's kind between its start and its end, evenly over that time; they are kept for a day.

    Workers do several jobs of a kind at once: what they were set to is not one job's alone.
    """
    samples = service.app.acting_as(who.caller).jobs.samples(job_id, limit=MAX_SAMPLES)
    return Json(JobSamples(samples=[lane_setting(sample) for sample in samples]))
