"""What retailers were asked, kept: one row for each question, written together with those of other items.

A row is there before its item ends. Many items end at once, so their rows share transactions: while one is written,
all that comes meanwhile waits and is the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import RowMapping, insert, select

from penstock import Penstock
from penstock_apps.products.tables import search_events

LONGEST_QUERY = 500
_LONGEST_NAME = 200
_LONGEST_CODE = 100


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """One question to one retailer."""

    job_id: UUID
    item_id: int
    user_id: str | None
    kind: str
    provider: str
    strategy: str
    query: str
    outcome: str
    attempt: int
    latency_ms: float
    at: datetime
    id: int = 0
    """Its number in the database, once it is there; they rise in the order of writing."""


class SearchEventRepository:
    """The search events of one Penstock's database."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    def add(self, events: Sequence[SearchEvent]) -> None:
        """Keep events, all or none."""
        rows = [
            {
                **{name: value for name, value in asdict(event).items() if name != "id"},
                "provider": event.provider[:_LONGEST_NAME],
                "query": event.query[:LONGEST_QUERY],
                "outcome": event.outcome[:_LONGEST_CODE],
            }
            for event in events
        ]
        self._app.in_transaction(lambda connection: connection.execute(insert(search_events), rows))

    def of_job(self, job_id: UUID, *, after: int = 0, limit: int = 1_000) -> list[SearchEvent]:
        """A page of a job's events in the order they were written, behind the one with the number ``after``."""
        query = (
            select(search_events)
            .where(search_events.c.job_id == job_id, search_events.c.id > after)
            .order_by(search_events.c.id)
            .limit(limit)
        )
        rows = self._app.in_transaction(lambda connection: connection.execute(query).mappings().all(), reads=True)
        return [_event(row) for row in rows]


def _event(row: RowMapping) -> SearchEvent:
    at = row["at"]
    return SearchEvent(**{**row, "at": at if at.tzinfo else at.replace(tzinfo=UTC)})


class BatchWriter:
    """Writes what concurrent tasks hand in, as few times as possible; whoever hands in waits for its own.

    There is one queue for each event loop, so no lock is needed: a task that hands in either finds a writer at work or
    becomes the reason for one.
    """

    def __init__(self, write: Callable[[Sequence[SearchEvent]], None]) -> None:
        self._write = write
        self._queues: dict[asyncio.AbstractEventLoop, _Queue] = {}

    def hand_in(self, events: Sequence[SearchEvent]) -> asyncio.Future[None]:
        """Have events written soon; the answer is done when they are."""
        loop = asyncio.get_running_loop()
        is_written: asyncio.Future[None] = loop.create_future()
        if not events:
            is_written.set_result(None)
            return is_written
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Queue([], loop.create_task(self._work(loop)))
        queue.waiting.append((events, is_written))
        return is_written

    async def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            # The task begins only after hand_in() has put the first events in, and ends when none are left.
            while batch := self._queues[loop].take():
                together = [event for events, _ in batch for event in events]
                [failure] = await asyncio.gather(asyncio.to_thread(self._write, together), return_exceptions=True)
                # Everybody's events were in that transaction, so everybody is told.
                _settle(batch, failure)
        finally:
            for _, is_written in self._queues.pop(loop).waiting:
                is_written.cancel()


_Entry = tuple[Sequence[SearchEvent], "asyncio.Future[None]"]


@dataclass(slots=True)
class _Queue:
    waiting: list[_Entry]
    writer: asyncio.Task[None]

    def take(self) -> list[_Entry]:
        batch, self.waiting = self.waiting, []
        return batch


def _settle(batch: list[_Entry], failure: BaseException | None) -> None:
    for _, is_written in batch:
        if is_written.done():
            continue  # the task that handed it in was stopped and does not wait any more
        if failure is None:
            is_written.set_result(None)
        else:
            is_written.set_exception(failure)
