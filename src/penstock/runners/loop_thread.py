"""An event loop in a thread of its own, and another one when a handler keeps it.

Handlers share the loop, so each of them can harm the others: it may stop the loop, raise ``SystemExit`` in a task of
its own, or never give the loop back. The first two change nothing here. The third cannot be ended from outside: it is
noticed, said with the place in the code, and, once a call on that loop is past its time limit, the loop is left to the
handler that keeps it and everybody else goes on with a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
import traceback
from typing import Any, Protocol

import structlog

_MAX_ABANDONED = 16
_LEAVING_SECONDS = 1.0
_log = structlog.get_logger("penstock.loop")


class Moves(Protocol):
    """Who runs calls on the shared loop."""

    def has_overdue(self, moment: float) -> bool:
        """Has it a call that had to end before that moment?"""

    def runs(self, task: asyncio.Task[Any]) -> bool:
        """Is the task one of its own, and does it run a call?"""

    def move(self, new: LoopThread, blocker: asyncio.Task[Any] | None) -> None:
        """Go on with another loop; ``blocker`` is the task that keeps the old one, where that is known."""


class LoopThread:
    """One loop and its thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.is_leaving = False
        self._asked_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-loop", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Does its thread still run?"""
        return self._thread.is_alive()

    def blocked_for(self, now: float) -> float:
        """For how long it has not answered; asks it again when it has."""
        if self._asked_at is None:
            self._asked_at = now
            with contextlib.suppress(RuntimeError):  # closed
                self.loop.call_soon_threadsafe(self._answer)
            return 0.0
        return now - self._asked_at

    def current_task(self) -> asyncio.Task[Any] | None:
        """The task that has the loop now."""
        return asyncio.current_task(self.loop)

    def stack(self) -> str:
        """Where its thread is, for the log."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "" if frame is None else "".join(traceback.format_stack(frame)[-5:])

    def leave(self) -> None:
        """End as soon as the loop is free, and cancel what is left on it."""
        self.is_leaving = True
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)

    def join(self, timeout: float) -> None:
        """Wait for its thread."""
        self._thread.join(timeout)

    def _answer(self) -> None:
        self._asked_at = None

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self.is_leaving:
            try:
                self.loop.run_forever()  # until we leave, or until a handler stops it: then it goes on
            except BaseException as error:  # noqa: BLE001 - a task of a handler's raised SystemExit or its like
                _log.warning("a task of a handler ended the event loop, which goes on", error=type(error).__name__)
        with contextlib.suppress(BaseException):
            self.loop.set_task_factory(None)  # a handler may have set one
            self.loop.run_until_complete(self._clean_up())
        self.loop.close()

    async def _clean_up(self) -> None:
        leftover = asyncio.all_tasks(self.loop) - {asyncio.current_task()}
        for task in leftover:
            task.cancel()
        if leftover:
            await asyncio.wait(leftover, timeout=_LEAVING_SECONDS)  # one that will not be cancelled is left behind
        await asyncio.wait_for(self.loop.shutdown_asyncgens(), _LEAVING_SECONDS)


class EventLoopThread:
    """The loop that all async handlers of a worker share."""

    def __init__(self) -> None:
        self.current = LoopThread()
        self._lock = threading.Lock()
        self._runners: list[Moves] = []
        self._old_loops: list[LoopThread] = []
        self._has_warned = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of now."""
        return self.current.loop

    @property
    def abandoned(self) -> int:
        """Loops that were left to a handler which still keeps them."""
        return sum(loop.is_alive for loop in self._old_loops)

    def join_in(self, runner: Moves) -> LoopThread:
        """Be moved when the loop is left; the answer is the loop of now."""
        with self._lock:
            self._runners.append(runner)
            return self.current

    def look(self, *, patience: float, grace: float) -> None:
        """Notice a loop that a handler keeps for longer than ``patience``.

        When a call on it is past its deadline by ``grace`` seconds, everybody moves to a new loop.
        """
        now = time.monotonic()
        blocked_seconds = self.current.blocked_for(now)
        if blocked_seconds < patience:
            self._has_warned = self._has_warned and blocked_seconds > 0
            return
        if not self._has_warned:
            self._has_warned = True
            _log.error(
                "a handler keeps the event loop, and no other one runs; let it await, or make it a plain function",
                seconds=round(blocked_seconds, 1),
                stack=self.current.stack(),
            )
        with self._lock:
            runners = tuple(self._runners)
        if any(runner.has_overdue(now - grace) for runner in runners):
            self._replace(runners)

    def close(self, timeout: float = 5.0) -> None:
        """Stop the loop and wait for its thread, but not for ever."""
        self.current.leave()
        self.current.join(timeout)

    def _replace(self, runners: tuple[Moves, ...]) -> None:
        self._old_loops = [loop for loop in self._old_loops if loop.is_alive]
        if len(self._old_loops) >= _MAX_ABANDONED:
            _log.error(
                "too many event loops are kept by handlers; this one is not replaced", loops=len(self._old_loops)
            )
            return
        with self._lock:
            old, self.current = self.current, LoopThread()
            self._old_loops.append(old)
        _log.error("the event loop is left to the handler that keeps it; the others go on with a new one")
        keeps = old.current_task()
        blocker = keeps if keeps is not None and any(runner.runs(keeps) for runner in runners) else None
        for runner in runners:
            runner.move(self.current, blocker)
        old.leave()
        self._has_warned = False
