"""Followers of jobs: one query for all of them, a few times a second while there are any."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog
from starlette.concurrency import run_in_threadpool

from penstock.app import Penstock
from penstock.errors import PenstockError

LOOK_SECONDS = 0.25
_PAUSE_AFTER_FAILURE_SECONDS = 1.0
_log = structlog.get_logger("penstock.change_feed")


class ChangeFeed:
    """Wakes the followers of a job when it has changed."""

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self._followers: defaultdict[UUID, set[asyncio.Event]] = defaultdict(set)
        self._last_marks: dict[UUID, object] = {}
        self._looking: asyncio.Task[None] | None = None
        self._visitors: set[asyncio.Event] = set()
        self.is_closed = False

    @contextmanager
    def follow(self, job_id: UUID) -> Iterator[asyncio.Event]:
        """An event that is set whenever the job changes, and when the server stops."""
        change_event = asyncio.Event()
        self._followers[job_id].add(change_event)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_again_and_again())
        try:
            yield change_event
        finally:
            self._followers[job_id].discard(change_event)
            if not self._followers[job_id]:
                del self._followers[job_id]
                self._last_marks.pop(job_id, None)

    @contextmanager
    def until_closed(self) -> Iterator[asyncio.Event]:
        """An event that is set when the server stops: for streams that poll by themselves."""
        closing = asyncio.Event()
        if self.is_closed:
            closing.set()
        self._visitors.add(closing)
        try:
            yield closing
        finally:
            self._visitors.discard(closing)

    def close(self) -> None:
        """End all streams: the server stops."""
        self.is_closed = True
        for closing in self._visitors:
            closing.set()
        for followers in self._followers.values():
            for change_event in followers:
                change_event.set()

    async def _look_again_and_again(self) -> None:
        while self._followers and not self.is_closed:
            pause = _PAUSE_AFTER_FAILURE_SECONDS
            try:
                await self._look()
                pause = LOOK_SECONDS
            except PenstockError as error:
                _log.warning("cannot read what changed; trying again", error=error.message, code=error.code)
            except Exception as error:  # noqa: BLE001 - all followers wait for this one task: nothing may end it
                _log.error("cannot read what changed; trying again", exc_info=error)
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        marks = await run_in_threadpool(self._app.system.change_marks, list(self._followers))
        for job_id, mark in marks.items():
            if job_id in self._followers and self._last_marks.get(job_id) != mark:
                self._last_marks[job_id] = mark
                for change_event in self._followers[job_id]:
                    change_event.set()
