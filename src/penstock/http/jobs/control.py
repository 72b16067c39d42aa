"""What people do to a job: pause it, cancel it, use its result, run parts of it again."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Body, Query
from starlette.responses import Response

from penstock.errors import InvalidInput
from penstock.http.auth import AService, SignedIn, Submitting
from penstock.http.errors import documented
from penstock.http.jobs.schemas import JobKilled, JobRerun, JobStatusResponse, Reason, Reprocess
from penstock.http.jobs.status import status_after_change
from penstock.http.responses import Json
from penstock.http.routing import Router

routes = Router(prefix="/api/jobs", tags=["jobs"])
_LONGEST_KICKOFF_MS = 30_000
_CHANGE_RESPONSES = documented(401, 404, 409, 422, 503)
_WITH_BODY = _CHANGE_RESPONSES | documented(400, 413)

Why = Annotated[Reason | None, Body()]


@routes.delete("/{job_id}", summary="Stop a job", response_model=JobKilled, responses=_CHANGE_RESPONSES)
def cancel_job(
    job_id: UUID,
    who: SignedIn,
    service: AService,
    reason: Annotated[str | None, Query(description="Why; kept and shown.", max_length=2000)] = None,
) -> Response:
    """No new item starts, running ones are stopped, and the history says who did it and why."""
    job = service.app.acting_as(who.caller).jobs.cancel(job_id, reason=reason or "User requested cancellation")
    return Json(JobKilled(**vars(status_after_change(job, who, service))))


@routes.post("/{job_id}/kill", summary="Stop a job", response_model=JobKilled, responses=_WITH_BODY)
def kill_job(job_id: UUID, who: SignedIn, service: AService, why: Why = None) -> Response:
    """The same as `DELETE /api/jobs/{job_id}`, with the reason in the body."""
    return cancel_job(job_id, who, service, _reason(why))


@routes.post(
    "/{job_id}/rerun",
    status_code=202,
    summary="Submit a job again",
    response_model=JobRerun,
    responses=_CHANGE_RESPONSES | documented(429),
)
def rerun_job(job_id: UUID, who: Submitting, service: AService) -> Response:
    """A new job of the same kind, owner and title, with the same params and items, for one that is over.

    Where it has a unique key and another job does that work already, the answer is that job.
    """
    job = service.app.acting_as(who.caller).jobs.rerun(job_id)
    return Json(JobRerun(**vars(status_after_change(job, who, service)), rerun_of=job_id), 202)


@routes.post("/{job_id}/pause", summary="Pause a job", response_model=JobStatusResponse, responses=_WITH_BODY)
def pause_job(job_id: UUID, who: SignedIn, service: AService, why: Why = None) -> Response:
    """Claimed items finish, no new ones start."""
    job = service.app.acting_as(who.caller).jobs.pause(job_id, reason=_reason(why))
    return Json(status_after_change(job, who, service))


@routes.post("/{job_id}/resume", summary="Resume a paused job", response_model=JobStatusResponse, responses=_WITH_BODY)
def resume_job(job_id: UUID, who: SignedIn, service: AService, why: Why = None) -> Response:
    """From where it was."""
    job = service.app.acting_as(who.caller).jobs.resume(job_id, reason=_reason(why))
    return Json(status_after_change(job, who, service))


@routes.post("/{job_id}/commit", summary="Use a job's result", response_model=JobStatusResponse, responses=_WITH_BODY)
def commit_job(job_id: UUID, who: SignedIn, service: AService, why: Why = None) -> Response:
    """The owner has used the result; it is not waiting any more."""
    job = service.app.acting_as(who.caller).jobs.commit(job_id, reason=_reason(why))
    return Json(status_after_change(job, who, service))


@routes.post(
    "/{job_id}/abandon", summary="Give up a job's result", response_model=JobStatusResponse, responses=_WITH_BODY
)
def abandon_job(job_id: UUID, who: SignedIn, service: AService, why: Why = None) -> Response:
    """The owner does not want it."""
    job = service.app.acting_as(who.caller).jobs.abandon(job_id, reason=_reason(why))
    return Json(status_after_change(job, who, service))


@routes.post(
    "/{job_id}/reprocess", summary="Run failed items again", response_model=JobStatusResponse, responses=_WITH_BODY
)
def reprocess_job(
    job_id: UUID, who: SignedIn, service: AService, choice: Annotated[Reprocess | None, Body()] = None
) -> Response:
    """In a new run. Items without tries left, and those that failed permanently, only if the request says so."""
    choice = choice or Reprocess()
    if (choice.scope == "items") != (choice.item_ids is not None):
        raise InvalidInput("scope 'items' needs itemIds, and scope 'job' has none", field="itemIds")
    job = service.app.acting_as(who.caller).jobs.reprocess(
        job_id,
        statuses=choice.statuses,
        item_ids=None if choice.item_ids is None else [_item_id(text) for text in choice.item_ids],
        error_codes=choice.error_codes,
        reset_attempts=choice.reset_attempts,
        permanent=choice.permanent,
        reason=choice.reason,
    )
    return Json(status_after_change(job, who, service))


@routes.post(
    "/{job_id}/kickoff",
    summary="Run a job for some seconds",
    response_model=JobStatusResponse,
    responses=_CHANGE_RESPONSES | documented(429),
)
def kickoff_job(
    job_id: UUID,
    who: SignedIn,
    service: AService,
    duration_ms: Annotated[int, Query(alias="durationMs", ge=100, le=_LONGEST_KICKOFF_MS)] = 5000,
) -> Response:
    """The request ends when the time is over or the job is finished; repeated, it brings the job to its end."""
    with service.kickoffs.take():
        job = service.app.acting_as(who.caller).jobs.kickoff(job_id, duration=duration_ms / 1000.0)
    return Json(status_after_change(job, who, service))


def _reason(why: Reason | None) -> str | None:
    return None if why is None else why.reason


def _item_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidInput(f"{text[:40]!r} is not the id of an item", field="itemIds")
    return int(text)
