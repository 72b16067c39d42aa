"""Async handlers, on an event loop in a thread of its own.

A slot is a task that makes one call after the other: a thousand calls that never wait cost one task, not a thousand.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

from penstock.errors import Stopped, TimeLimitExceeded
from penstock.runners.contract import Call, Ended, EndedCall

_CALLS_BEFORE_YIELD = 64


class EventLoopThread:
    """An event loop that runs until it is closed."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="penstock-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        leftover = asyncio.all_tasks(self.loop)
        for task in leftover:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*leftover, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=5)


class EventLoopRunner:
    """Makes calls to async functions on a shared loop."""

    def __init__(self, thread: EventLoopThread, concurrency: int, ended: Ended) -> None:
        self.concurrency = concurrency
        self._loop = thread.loop
        self._ended = ended
        self._waiting: deque[Call] = deque()
        self._running: dict[Call, asyncio.Task[None]] = {}
        self._slots: set[asyncio.Task[None]] = set()
        self._reports: list[EndedCall] = []

    def start(self, calls: Sequence[Call]) -> None:
        """Hand the calls to the loop."""
        self._loop.call_soon_threadsafe(self._accept, calls)

    def resize(self, concurrency: int) -> None:
        """Slots too many end with the call in hand; new ones are made for what waits."""
        self.concurrency = concurrency
        self._loop.call_soon_threadsafe(self._accept, ())

    def stop(self, calls: Collection[Call]) -> None:
        """Drop those that wait and cancel those that run."""
        for call in calls:
            call.stop.set = True
        self._loop.call_soon_threadsafe(self._interrupt, tuple(calls))

    def stop_waiting(self) -> None:
        """Drop all that wait."""
        self._loop.call_soon_threadsafe(self._drop_waiting)

    def close(self) -> None:
        """Nothing to let go of: the loop is shared."""

    def _drop_waiting(self) -> None:
        dropped = [(call, None, Stopped("stopped before it started")) for call in self._waiting]
        self._waiting.clear()
        self._ended(dropped)

    def _accept(self, calls: Sequence[Call]) -> None:
        self._waiting.extend(calls)
        idle = len(self._slots) - len(self._running)
        for _ in range(min(self.concurrency - len(self._slots), len(self._waiting) - idle)):
            slot = self._loop.create_task(self._slot())
            self._slots.add(slot)
            slot.add_done_callback(self._slots.discard)

    def _report(self, ended: EndedCall) -> None:
        """Hand over what ends in one turn of the loop together."""
        if not self._reports:
            self._loop.call_soon(self._hand_over)
        self._reports.append(ended)

    def _hand_over(self) -> None:
        reports, self._reports = self._reports, []
        self._ended(reports)

    def _interrupt(self, calls: Sequence[Call]) -> None:
        for call in calls:
            task = self._running.get(call)
            if task is not None:
                task.cancel()

    async def _slot(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        made = 0
        while self._waiting and len(self._slots) <= self.concurrency:
            call = self._waiting.popleft()
            if call.stop.set:
                self._report((call, None, Stopped("stopped before it started")))
                continue
            self._running[call] = task
            try:
                if call.timeout is None:
                    result = await call.function(call.argument)
                else:
                    result = await self._in_time(call)
                ended: EndedCall = (call, result, None)
            except asyncio.CancelledError as error:
                ended = (call, None, _meaning(call, task, error))
            except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever it raises is its outcome
                ended = (call, None, error)
            finally:
                del self._running[call]
            while task.cancelling():
                task.uncancel()  # that was meant for the call, not for those that follow in this slot
            self._report(ended)
            made += 1
            if made % _CALLS_BEFORE_YIELD == 0:
                await asyncio.sleep(0)
        # At once, not when the task is over: of slots that end in one turn of the loop only those too many may go.
        self._slots.discard(task)

    async def _in_time(self, call: Call) -> Any:
        """Make a call that has a time limit."""
        deadline = asyncio.timeout(call.timeout)
        try:
            async with deadline:
                return await call.function(call.argument)
        except TimeoutError as error:
            if deadline.expired():
                raise TimeLimitExceeded(f"the handler ran longer than {call.timeout:g} s") from error
            raise


def _meaning(call: Call, slot: asyncio.Task[None], error: asyncio.CancelledError) -> BaseException:
    """Why a call was cancelled."""
    if call.stop.set:
        return Stopped("stopped while it ran")
    if slot.cancelling():
        raise error  # the loop is closing
    return error  # the handler's own: something it waited for was cancelled
