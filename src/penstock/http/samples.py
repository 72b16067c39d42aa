"""``/api/jobs/{job_id}/samples``: what the workers' controllers chose while a job ran, for charts."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from penstock.http.auth import AService, SignedIn
from penstock.http.errors import documented
from penstock.http.responses import Json
from penstock.http.vocabularies.pipeline.translation import controller
from penstock.http.vocabularies.tasks.schemas import Controller

routes = APIRouter(prefix="/api/jobs", tags=["jobs"])
MOST = 300


class JobSamples(BaseModel):
    """What happened, over time."""

    samples: list[Controller] = Field(description=f"The oldest first, {MOST} at most.")


@routes.get(
    "/{job_id}/samples",
    summary="How a job's workers were set",
    response_model=JobSamples,
    responses=documented(401, 404, 422, 503),
)
def get_samples(job_id: UUID, who: SignedIn, one: AService) -> Response:
    """Samples of the job's kind between its start and its end, evenly over that time; they are kept for a day.

    Workers do several jobs of a kind at once: what they were set to is not one job's alone.
    """
    found = one.app.acting_as(who.caller).jobs.samples(job_id, limit=MOST)
    return Json({"samples": [controller(sample) for sample in found]})
