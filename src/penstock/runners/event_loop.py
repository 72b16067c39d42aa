"""Async handlers, on an event loop in a thread of its own.

A slot is a task that makes one call after the other: a thousand calls that never wait cost one task, not a thousand.
A task that somebody cancelled (its own handler, a neighbour, we) makes no further call: a new one takes its place.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

from penstock.errors import Stopped, TimeLimitExceeded
from penstock.runners.contract import Call, EndedCall, OnEnded
from penstock.runners.loop_thread import EventLoopThread, LoopThread

__all__ = ["EventLoopRunner", "EventLoopThread"]

_CALLS_BEFORE_YIELD = 64


class EventLoopRunner:
    """Makes calls to async functions on a shared loop."""

    is_exhausted = False

    def __init__(self, thread: EventLoopThread, concurrency: int, on_ended: OnEnded) -> None:
        self.concurrency = concurrency
        self.on_ended = on_ended
        self._slots = _Slots(self, thread.join_in(self))
        self._old_slots: list[_Slots] = []

    def start(self, calls: Sequence[Call]) -> None:
        """Hand the calls to the loop."""
        slots = self._slots
        slots.waiting.extend(calls)
        slots.soon(slots.fill)
        if slots is not self._slots:  # everybody moved meanwhile
            self._take_over(slots)

    def resize(self, concurrency: int) -> None:
        """Surplus slots end with their current call; new ones are made for what waits."""
        self.concurrency = concurrency
        self.start_waiting()

    def stop(self, calls: Collection[Call]) -> None:
        """Drop those that wait and cancel those that run."""
        for call in calls:
            call.stop.set = True
        for slots in (self._slots, *self._old_slots):
            slots.soon(slots.interrupt, tuple(calls))

    def start_waiting(self) -> None:
        """Make slots for what waits."""
        self._slots.soon(self._slots.fill)

    def stop_waiting(self) -> None:
        """Drop all that wait, also where the loop is kept by a handler."""
        ended_calls: list[EndedCall] = []
        for call in self._slots.pop_waiting():
            call.stop.set = True
            ended_calls.append((call, None, Stopped("stopped before it started")))
        self.on_ended(ended_calls)

    def calls(self) -> Collection[Call]:
        """Those that wait, run, or were just reported, on this loop or on one that was left."""
        return [call for slots in (self._slots, *self._old_slots) for call in slots.calls()]

    def abandon(self, call: Call) -> None:
        """Cancel it once more and give its place to another."""
        call.stop.set = True
        for slots in (self._slots, *self._old_slots):
            slots.soon(slots.abandon, call)

    @property
    def abandoned(self) -> int:
        """Calls that were given up and still run, here or on a loop that was left to them."""
        return sum(slots.abandoned for slots in (self._slots, *self._old_slots) if slots.thread.is_alive)

    def close(self) -> None:
        """Nothing to close: the loop is shared."""

    def has_overdue(self, moment: float) -> bool:
        """Has it a call that had to end before that moment?"""
        return any(call.deadline is not None and call.deadline <= moment for call in self._slots.calls())

    def runs(self, task: asyncio.Task[Any]) -> bool:
        """Is the task one of its own, and does it run a call?"""
        return task in tuple(self._slots.running.values())

    def move(self, new: LoopThread, blocker: asyncio.Task[Any] | None) -> None:
        """Go on with another loop.

        The call that keeps the old one stays there: the watchdog ends it when its time is up. The others did nothing
        wrong, and go back without a try; where nobody can be blamed, each of them has its own time limit.
        """
        old, self._slots = self._slots, _Slots(self, new)
        self._old_slots = [slots for slots in self._old_slots if slots.thread.is_alive] + [old]
        ended_calls = [*old.reports, *old.handing]
        for call, task in tuple(old.running.items()) if blocker is not None else ():
            if task is blocker:
                old.abandoned = 1
            else:
                call.stop.set = True
                ended_calls.append((call, None, Stopped("another handler kept the event loop")))
        self.on_ended(ended_calls)
        self._take_over(old)

    def _take_over(self, old: _Slots) -> None:
        self._slots.waiting.extend(old.pop_waiting())
        self._slots.soon(self._slots.fill)


class _Slots:
    """The tasks of one runner on one loop; what is not said to be otherwise happens in the loop's thread."""

    def __init__(self, runner: EventLoopRunner, thread: LoopThread) -> None:
        self.thread = thread
        self.waiting: deque[Call] = deque()  # filled and emptied from any thread: each step of a deque is atomic
        self.running: dict[Call, asyncio.Task[None]] = {}
        self.reports: list[EndedCall] = []
        self.handing: list[EndedCall] = []
        self.abandoned = 0
        self._runner = runner
        self._loop = thread.loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[Call, asyncio.TimerHandle] = {}
        self._overdue: set[Call] = set()

    def soon(self, function: object, *arguments: object) -> None:
        """From any thread: have something done in the loop's."""
        with contextlib.suppress(RuntimeError):  # a loop that was left and has closed
            self._loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]

    def calls(self) -> list[Call]:
        """From any thread: the calls held here."""
        reported_calls = [call for call, _, _ in (*tuple(self.reports), *tuple(self.handing))]
        return [*tuple(self.waiting), *tuple(self.running), *reported_calls]

    def pop_waiting(self) -> list[Call]:
        """From any thread: take all that waits away."""
        calls: list[Call] = []
        with contextlib.suppress(IndexError):
            while True:
                calls.append(self.waiting.popleft())
        return calls

    def fill(self) -> None:
        """Make slots for what waits."""
        if self.thread.is_leaving:
            return
        idle = len(self._tasks) - len(self.running)
        for _ in range(min(self._runner.concurrency - len(self._tasks), len(self.waiting) - idle)):
            # Not by the loop's own create_task: a handler may have set a task factory.
            task = asyncio.Task(self._slot(), loop=self._loop)
            self._tasks.add(task)
            task.add_done_callback(self._slot_over)

    def interrupt(self, calls: Sequence[Call]) -> None:
        """Drop those of the calls that wait, and cancel those that run."""
        for call in tuple(self.waiting):
            if call.stop.set:
                with contextlib.suppress(ValueError):
                    self.waiting.remove(call)
                    self._report((call, None, Stopped("stopped before it started")))
        for call in calls:
            task = self.running.get(call)
            if task is not None:
                task.cancel()

    def abandon(self, call: Call) -> None:
        """Give up a running call."""
        task = self.running.pop(call, None)
        if task is not None and not self.thread.is_leaving:
            self.abandoned += 1
            self._tasks.discard(task)
            task.cancel()
            self.fill()

    def _slot_over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self.waiting:
            self.fill()

    def _report(self, ended_call: EndedCall) -> None:
        """Hand over what ends in one turn of the loop together."""
        if not self.reports:
            self._loop.call_soon(self._hand_over)
        self.reports.append(ended_call)

    def _hand_over(self) -> None:
        self.handing, self.reports = self.reports, []
        self._runner.on_ended(self.handing)
        self.handing = []

    async def _slot(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        call_count = 0
        while self.waiting and len(self._tasks) <= self._runner.concurrency:
            try:
                call = self.waiting.popleft()
            except IndexError:  # somebody else was quicker
                break
            if call.stop.set:
                self._report((call, None, Stopped("stopped before it started")))
                continue
            self.running[call] = task
            ended_call = await self._make(call, task)
            self._report(ended_call)
            if self.running.pop(call, None) is None:  # abandoned: another task has this one's place
                self.abandoned -= 1
                return
            if task.cancelling():
                break  # a cancellation may still be under way to this task, and is not meant for the next call
            call_count += 1
            if call_count % _CALLS_BEFORE_YIELD == 0:
                await asyncio.sleep(0)
        # At once, not when the task is over: of slots that end in one turn of the loop only those too many may go.
        self._tasks.discard(task)

    async def _make(self, call: Call, task: asyncio.Task[None]) -> EndedCall:
        """Make one call; whatever it raises is its answer."""
        if call.timeout is not None:
            call.set_deadline()
            self._timers[call] = self._loop.call_later(call.timeout, self._look_at_the_clock, call, task)
        try:
            return call, await call.function(call.argument), None
        except asyncio.CancelledError as error:
            return call, None, self._meaning(call, error)
        except GeneratorExit as error:
            if not self._loop.is_running():
                raise  # the interpreter takes this task away; a handler's own GeneratorExit is like any other
            return call, None, error
        except BaseException as error:  # noqa: BLE001 - whatever it raises is its outcome
            return call, None, error
        finally:
            if call.timeout is not None:
                self._timers.pop(call).cancel()
                self._overdue.discard(call)

    def _look_at_the_clock(self, call: Call, task: asyncio.Task[None]) -> None:
        """Its time is up, unless it was given more meanwhile."""
        now = self._loop.time()
        if call.deadline is not None and call.deadline > now:
            self._timers[call] = self._loop.call_later(call.look_again_in(now), self._look_at_the_clock, call, task)
            return
        self._overdue.add(call)
        task.cancel()

    def _meaning(self, call: Call, error: asyncio.CancelledError) -> BaseException:
        """Why a call was cancelled."""
        if call in self._overdue:
            late = TimeLimitExceeded(call.too_late())
            late.__cause__ = error
            return late
        if call.stop.set:
            return Stopped("stopped while it ran")
        if self.thread.is_leaving:
            call.stop.set = True
            return Stopped("the event loop ends")
        return error  # its own, or a neighbour's: something it waited for was cancelled
