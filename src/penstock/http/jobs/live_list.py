"""``/api/jobs/live``: a page of the list of jobs as it changes, for ``EventSource``.

One kind of event comes, ``jobs``: the page's ids in their order, those of its jobs that are new on the page or have
changed since the event before, and the cursor of the page behind it. The first event has the whole page; after that
there is one only when something changed. The stream ends when the server stops.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from typing import Annotated
from uuid import UUID

import structlog
from fastapi import Depends, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from penstock.errors import PenstockError
from penstock.http.auth import AService, SignedIn
from penstock.http.blank_params import BlankParams
from penstock.http.errors import documented
from penstock.http.jobs.filters import APageRequest, next_cursor
from penstock.http.jobs.report import job_listed
from penstock.http.jobs.routes import MAX_LISTED
from penstock.http.jobs.schemas import JobListChange
from penstock.http.jobs.streams import one_more_stream
from penstock.http.responses import json_text
from penstock.http.routing import Router
from penstock.lifecycle.job import Job
from penstock.operations.read_jobs import JobPage

routes = Router(prefix="/api/jobs", tags=["jobs"], route_class=BlankParams)
LOOK_SECONDS = 1.0
_REST = 10.0
"""After a slow query, such as a search through many jobs, the pause is so many times its length."""
_log = structlog.get_logger("penstock.change_feed")


@routes.get(
    "/live",
    summary="The list of jobs as it changes (server-sent events)",
    response_class=EventSourceResponse,
    responses=documented(401, 422, 429, 503, streams=True),
    dependencies=[Depends(one_more_stream)],
)
async def follow_jobs(
    who: SignedIn,
    service: AService,
    page_request: APageRequest,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 50,
) -> AsyncIterator[ServerSentEvent]:
    """`jobs` with the page at first, and then whenever it changed: `order` has all ids, `jobs` those that changed."""
    page_sent = _PageSent()

    def look() -> JobPage:
        return service.app.acting_as(who.caller).jobs.page(
            page_request.job_filter, after=page_request.after, limit=limit
        )

    with service.change_feed.until_closed() as closing:
        while not closing.is_set():
            began_at = time.monotonic()
            try:
                news = page_sent.news(await run_in_threadpool(look), service.app.store.current_time())
            except PenstockError as error:
                _log.warning("cannot read the list of jobs; trying again", error=error.message, code=error.code)
            else:
                if news is not None:
                    yield ServerSentEvent(event="jobs", raw_data=json_text(news))
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), max(LOOK_SECONDS, _REST * (time.monotonic() - began_at)))


class _PageSent:
    """What a client has been sent of a page."""

    def __init__(self) -> None:
        self._marks: dict[UUID, object] | None = None
        self._next: str | None = None

    def news(self, page: JobPage, now: datetime) -> JobListChange | None:
        """What has changed since; None when nothing has."""
        before = {} if self._marks is None else self._marks
        marks: dict[UUID, object] = {job.id: _mark(job) for job in page.jobs}
        behind = next_cursor(page)
        changed_jobs = [job_listed(job, now) for job in page.jobs if before.get(job.id) != marks[job.id]]
        same = self._marks is not None and list(marks) == list(before) and behind == self._next
        self._marks, self._next = marks, behind
        if same and not changed_jobs:
            return None
        return JobListChange(order=list(marks), jobs=changed_jobs, next=behind)


def _mark(job: Job) -> object:
    """What is shown of a job in a list, but for what moves with the clock."""
    return job.updated_at, job.state, job.run, job.progress, job.message, job.error_code, job.killed_by
