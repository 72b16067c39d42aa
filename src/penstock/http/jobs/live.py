"""``/api/jobs/{job_id}/events``: a job as it happens, for ``EventSource``.

Two kinds of events come: ``history``, each line of the job's history with its sequence number as id, so that whoever
comes back with ``Last-Event-ID`` misses none; and ``progress``, the job as it stands, whenever it has changed. After
``end`` nothing more comes, nor after ``gone``, which says that the job was deleted in the meantime.
``/api/jobs/{job_id}/stream`` has the second kind alone, without a name, for clients that listen to plain messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Annotated
from uuid import UUID

import structlog
from fastapi import Depends, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from penstock.errors import JobNotFound, StoreUnavailable
from penstock.http.auth import AService, SignedIn
from penstock.http.change_feed import LOOK_SECONDS
from penstock.http.errors import documented
from penstock.http.jobs.report import history_line
from penstock.http.jobs.status import read_news
from penstock.http.jobs.streams import one_more_stream
from penstock.http.responses import json_text
from penstock.http.routing import Router
from penstock.http.service import Service
from penstock.http.stream_access import Listening, StreamAccess
from penstock.lifecycle.states import FINISHED
from penstock.operations.read_jobs import HISTORY_PAGE

routes = Router(prefix="/api/jobs", tags=["jobs"])
_log = structlog.get_logger("penstock.live")
_LAST_SEQUENCE = 2**31 - 1


def visible_job(job_id: UUID, who: SignedIn, service: AService) -> UUID:
    """A job that the caller may see: checked before the stream begins."""
    service.app.acting_as(who.caller).jobs.get(job_id)
    return job_id


@routes.get(
    "/{job_id}/events",
    summary="A job as it happens (server-sent events)",
    response_class=EventSourceResponse,
    responses=documented(401, 404, 422, 429, 503, streams=True),
    dependencies=[Depends(one_more_stream)],
)
async def follow_job(
    job_id: Annotated[UUID, Depends(visible_job)],
    access: Listening,
    service: AService,
    last_event_id: Annotated[str | None, Header(description="The last `history` event that was seen.")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """`history` for every transition, `progress` whenever something changed, `end` when the job is over."""
    async for event in _events(job_id, access, service, _sequence(last_event_id)):
        yield event


@routes.get(
    "/{job_id}/stream",
    summary="A job's status whenever it changes (server-sent events)",
    response_class=EventSourceResponse,
    responses=documented(401, 404, 422, 429, 503, streams=True),
    dependencies=[Depends(one_more_stream)],
)
async def stream_job(
    job_id: Annotated[UUID, Depends(visible_job)], access: Listening, service: AService
) -> AsyncIterator[ServerSentEvent]:
    """The same without its history, as plain messages: each is the job as it stands, and its `status` says when it is
    over.
    """
    async for event in _events(job_id, access, service, _LAST_SEQUENCE):
        if event.event == "progress":
            yield ServerSentEvent(raw_data=event.raw_data)


async def _events(job_id: UUID, access: StreamAccess, service: Service, after: int) -> AsyncIterator[ServerSentEvent]:
    """What happens to a job behind a line of its history, until it is over, the session is, or the server stops."""
    last_status = None
    with service.change_feed.follow(job_id) as change_event:
        while True:
            change_event.clear()
            try:
                read = partial(read_news, job_id, access.who, service, after=after, limit=HISTORY_PAGE)
                job, lines = await run_in_threadpool(read)
            except JobNotFound as error:
                yield ServerSentEvent(event="gone", raw_data=json_text({"code": error.code, "message": error.message}))
                return
            except StoreUnavailable as error:
                _log.warning("cannot read a job; trying again", error=error.message, code=error.code)
                await asyncio.sleep(LOOK_SECONDS)
                if service.change_feed.is_closed:
                    return
                continue
            if not await access.holds():  # after the look: what happened behind the end of a session is not told
                return
            for line in lines:
                after = line.sequence
                yield ServerSentEvent(event="history", id=str(after), raw_data=json_text(history_line(line)))
            if len(lines) == HISTORY_PAGE:
                continue  # there may be more, and they come before what the job is now
            status = json_text(job)
            if status != last_status:
                last_status = status
                yield ServerSentEvent(event="progress", raw_data=status)
            if job.state in FINISHED:
                yield ServerSentEvent(event="end", raw_data="{}")
                return
            while not await _has_changed(change_event, access.seconds_to_check):
                if not await access.holds():
                    return
            if service.change_feed.is_closed:
                return


async def _has_changed(change_event: asyncio.Event, seconds: float) -> bool:
    """Wait for a change, but no longer than so many seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(change_event.wait(), seconds)
    return change_event.is_set()


def _sequence(text: str | None) -> int:
    """The sequence number a browser sends back; anything else starts from the beginning."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= len(str(_LAST_SEQUENCE))):
        return 0
    return min(int(text), _LAST_SEQUENCE)
