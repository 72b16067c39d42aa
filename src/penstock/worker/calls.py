"""From a claimed item to the call that runs it: a kind's plan, process or finalize.

A kind's ``timeout`` bounds each try of an item and of finalize. A plan may take as long as it likes, as long as it goes
on: its time begins again with every item it yields, and does not run while a batch is persisted.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from typing import Any
from uuid import UUID

import structlog

from penstock.errors import StoreLocked
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import ClaimedItem, Item
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.policy import RunsIn
from penstock.lifecycle.states import ItemRole, ItemStatus
from penstock.operations.heartbeat import say
from penstock.operations.read_jobs import get_job, items
from penstock.runners.contract import Call, StopFlag
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.worker.context import ItemContext, JobContext
from penstock.worker.controllers import Controllers
from penstock.worker.plan_writer import PlanWriter

_READ_AT_ONCE = 1_000
_log = structlog.get_logger("penstock.plan")


class Calls:
    """Makes calls for the items of one kind."""

    def __init__(self, store: Store, kind: Kind, settings: Settings, controllers: Controllers) -> None:
        self._store = store
        self._kind = kind
        self._max_bytes = settings.max_payload_bytes
        self._files_directory = settings.files_directory.absolute()
        self._persisting = PlanWriter(
            store, kind, controllers, max_item_bytes=self._max_bytes, max_batch_bytes=settings.ingest_max_batch_bytes
        )
        self._process = kind.process
        self._timeout = kind.policy.timeout
        self._on_loop = {
            role: kind.runs_in(role) is RunsIn.EVENT_LOOP
            for role, step in ((ItemRole.PLAN, kind.plan), (ItemRole.FINALIZE, kind.finalize))
            if step is not None
        }
        self._seeks = kind.plan is not None and len(inspect.signature(kind.plan).parameters) > 1

    def call(self, claimed_item: ClaimedItem, renew_at: float = 0.0) -> Call:
        """The call that runs a claimed item."""
        stop = StopFlag()
        if claimed_item.role is ItemRole.ITEM:
            item = ItemContext(claimed_item, self._files_directory, stop)
            return Call(claimed_item, self._process, item, self._timeout, stop, None, renew_at)
        is_async = self._on_loop.get(claimed_item.role, False)
        call = Call(claimed_item, _nothing, None, self._timeout, stop, None, renew_at)
        if claimed_item.role is ItemRole.PLAN:
            call.function = self._plan_on_loop if is_async else self._plan_in_thread
        else:
            call.function = self._finalize_on_loop if is_async else self._finalize_in_thread
        call.argument = call
        return call

    def _plan_in_thread(self, call: Call) -> None:
        """The next batch is read while the last one is written: a file, and a database that works beside us."""
        job = self._work_job(call)
        with (
            _closing(self._begin_plan(job)) as plan,
            ThreadPoolExecutor(1, thread_name_prefix=f"penstock-plan-{job.kind}") as writer,
        ):
            writing: Future[int] | None = None
            inputs = iter(self._behind(job, _renewing_deadline(plan, call)))
            read_to = job.planned
            while batch := self._persisting.take(inputs, read_to):
                read_to += len(batch)
                job.check()
                with call.off_the_clock():
                    position = job.planned if writing is None else writing.result()
                writing = writer.submit(self._persisting.persist, call.owner, batch, position, call.stop)
            if writing is not None:
                with call.off_the_clock():
                    writing.result()

    async def _plan_on_loop(self, call: Call) -> None:
        job = await asyncio.to_thread(self._work_job, call)
        position = job.planned
        batch: list[JSON] = []
        async with _closing_async(self._begin_plan(job)) as plan:
            async for value in self._behind(job, _renewing_deadline_async(plan, call)):
                batch.append(value)
                if len(batch) >= self._persisting.rows:
                    position = await asyncio.to_thread(self._persist, call, batch, position)
                    batch = []
        if batch:
            await asyncio.to_thread(self._persist, call, batch, position)

    def _persist(self, call: Call, batch: list[JSON], position: int) -> int:
        with call.off_the_clock():
            return self._persisting.persist(call.owner, self._persisting.encode(batch, position), position, call.stop)

    def _begin_plan(self, job: JobContext) -> Any:
        plan = self._kind.handler(ItemRole.PLAN)
        return plan(job, job.planned) if self._seeks else plan(job)

    def _behind(self, job: JobContext, inputs: Any) -> Any:
        """A plan that takes a second argument goes on behind that item; any other is replayed, and we skip."""
        if self._seeks or not job.planned:
            return inputs
        return _skipping(inputs, job.planned)

    def _finalize_in_thread(self, call: Call) -> JSON:
        return self._kind.handler(ItemRole.FINALIZE)(self._work_job(call))

    async def _finalize_on_loop(self, call: Call) -> JSON:
        job = await asyncio.to_thread(self._work_job, call)
        return await self._kind.handler(ItemRole.FINALIZE)(job)

    def _work_job(self, call: Call) -> JobContext:
        claimed_item: ClaimedItem = call.owner
        with call.off_the_clock():
            job = self._store.read(
                lambda transaction: get_job(transaction, claimed_item.job_id, SYSTEM), single_statement=True
            )
        return JobContext(
            id=job.id,
            kind=job.kind,
            owner=job.user_id,
            run=job.run,
            attempt=claimed_item.attempt,
            params=job.params,
            progress=job.progress,
            planned=job.progress.total,
            _say=lambda message: self._say(job.id, message),
            _items=lambda status: _each_item(self._store, job.id, status),
            stop=call.stop,
        )

    def _say(self, job_id: UUID, message: str) -> None:
        """A progress message is not worth a failed item: it is lost while another transaction has locked the job."""
        try:
            self._store.write(lambda transaction: say(transaction, job_id, message), bounded=True)
        except StoreLocked:
            _log.info("a message was not kept: another open transaction has locked the job", job=str(job_id))


def _nothing(_: Any) -> None:
    """The function of a call that is not set yet."""


def _each_item(store: Store, job_id: Any, status: ItemStatus | None) -> Iterator[Item]:
    """All items of a job, a page at a time."""
    statuses = None if status is None else (status,)

    def page_behind(after: int) -> list[Item]:
        return store.read(
            lambda transaction: items(transaction, job_id, statuses=statuses, after=after, limit=_READ_AT_ONCE)
        )

    after = 0
    while page := page_behind(after):
        yield from page
        after = page[-1].position


@contextmanager
def _closing(plan: Any) -> Iterator[Any]:
    """Close a plan's generator here and now: left to the garbage collector, its ``finally`` would run in any thread.

    What closing it raises changes nothing: the plan has ended, or was stopped, for a reason of its own.
    """
    try:
        yield plan
    finally:
        if inspect.isgenerator(plan):
            with contextlib.suppress(BaseException):
                plan.close()


@asynccontextmanager
async def _closing_async(plan: Any) -> AsyncIterator[Any]:
    try:
        yield plan
    finally:
        if inspect.isasyncgen(plan):
            with contextlib.suppress(BaseException):
                await plan.aclose()


def _renewing_deadline(plan: Iterable[JSON], call: Call) -> Iterable[JSON]:
    """What a plan yields; each item renews its deadline."""
    return plan if call.timeout is None else _with_deadline(plan, call)


def _with_deadline(plan: Iterable[JSON], call: Call) -> Iterator[JSON]:
    for value in plan:
        call.set_deadline()
        yield value


async def _renewing_deadline_async(plan: Any, call: Call) -> AsyncIterator[JSON]:
    async for value in _as_async(plan):
        call.set_deadline()
        yield value


def _skipping(inputs: Any, count: int) -> Any:
    """The inputs without the first ``count``."""
    if inspect.isasyncgen(inputs):
        return _skipping_async(inputs, count)
    return islice(inputs, count, None)


async def _skipping_async(inputs: AsyncIterator[JSON], count: int) -> AsyncIterator[JSON]:
    remaining = count
    async for value in inputs:
        if remaining:
            remaining -= 1
        else:
            yield value


async def _as_async(plan: Any) -> AsyncIterator[JSON]:
    """An async generator, a coroutine that answers a list, or a plain iterable, all alike."""
    if inspect.isasyncgen(plan):
        async for value in plan:
            yield value
        return
    values: Iterable[JSON] = await plan if inspect.isawaitable(plan) else plan
    for value in values:
        yield value
