"""``/api/schedules``: what is submitted again and again, for admins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Path
from pydantic import Field
from starlette.responses import Response

from penstock.http.auth import Admin, AService
from penstock.http.errors import documented
from penstock.http.responses import Json
from penstock.http.routing import Router
from penstock.lifecycle import bounds
from penstock.lifecycle.schedules import CatchUp
from penstock.operations.schedules import ScheduleStatus

routes = Router(prefix="/api/schedules", tags=["operating"])
Name = Annotated[
    str, Path(max_length=bounds.SCHEDULE.longest, description="The schedule's name.", examples=["nightly"])
]


@dataclass(kw_only=True)
class ScheduleShown:
    """A schedule, and how it fares."""

    name: str
    cron: Annotated[str, Field(examples=["0 3 * * *"])]
    zone: Annotated[str, Field(examples=["Europe/Berlin"])]
    kind: str
    params: Any
    catch_up: Annotated[CatchUp, Field(description="Which of the ticks that were missed are made good for.")]
    owner: str | None
    title: str | None
    priority: int | None
    unique_key: str | None
    paused: bool
    next_at: Annotated[datetime | None, Field(description="Its next tick; null while it is paused.")]
    last_at: Annotated[datetime | None, Field(description="The tick that was run last.")]
    last_job_id: UUID | None
    last_error: Annotated[str | None, Field(description="Why the last tick could not be submitted.")]


@dataclass(kw_only=True)
class ScheduleRun:
    """The job that was submitted by hand."""

    job_id: UUID


@routes.get(
    "", summary="List the schedules", response_model=list[ScheduleShown], responses=documented(401, 403, 422, 503)
)
def list_schedules(_who: Admin, service: AService) -> Response:
    """By name, each with its next tick and what it came to last."""
    return Json([_schedule_report(status) for status in service.app.schedules.list()])


@routes.post(
    "/{name}/pause",
    summary="Pause a schedule",
    response_model=ScheduleShown,
    responses=documented(401, 403, 404, 422, 503),
)
def pause_schedule(name: Name, _who: Admin, service: AService) -> Response:
    """Nothing is submitted until it is resumed."""
    service.app.schedules.pause(name)
    return Json(_schedule_report(service.app.schedules.get(name)))


@routes.post(
    "/{name}/resume",
    summary="Resume a schedule",
    response_model=ScheduleShown,
    responses=documented(401, 403, 404, 422, 503),
)
def resume_schedule(name: Name, _who: Admin, service: AService) -> Response:
    """It goes on with the next tick; those that came meanwhile were not wanted."""
    service.app.schedules.resume(name)
    return Json(_schedule_report(service.app.schedules.get(name)))


@routes.post(
    "/{name}/run",
    status_code=202,
    summary="Run a schedule now",
    response_model=ScheduleRun,
    responses=documented(401, 403, 404, 422, 503),
)
def run_schedule(name: Name, who: Admin, service: AService) -> Response:
    """Its job is submitted now, besides its ticks."""
    return Json(ScheduleRun(job_id=service.app.schedules.run(name, who.caller).id), 202)


@routes.delete(
    "/{name}",
    summary="Remove a schedule",
    response_model=ScheduleShown,
    responses=documented(401, 403, 404, 422, 503),
)
def remove_schedule(name: Name, _who: Admin, service: AService) -> Response:
    """One that no program declares any more; a program that does writes it down again when it starts."""
    status = service.app.schedules.get(name)
    service.app.schedules.remove(name)
    return Json(_schedule_report(status))


def _schedule_report(status: ScheduleStatus) -> ScheduleShown:
    schedule = status.schedule
    return ScheduleShown(
        name=schedule.name,
        cron=schedule.cron,
        zone=schedule.zone,
        kind=schedule.kind,
        params=schedule.params,
        catch_up=schedule.catch_up,
        owner=schedule.owner,
        title=schedule.title,
        priority=schedule.priority,
        unique_key=schedule.unique_key,
        paused=status.is_paused,
        next_at=status.next_at,
        last_at=status.last_at,
        last_job_id=status.last_job_id,
        last_error=status.last_error,
    )
