"""Plain functions, in threads.

A thread cannot be killed. Past its time limit a call is given up: it ends as ``TimeLimitExceeded``, another thread
takes its place, and what the late one returns in the end is discarded. A handler that looks at
``item.stopped``, or calls ``item.check()``, ends soon after. Work that must be stopped for real belongs in processes.

Threads that were given up and still run are counted. Beyond ``max_abandoned`` of them none is replaced any more, so
that a handler that always hangs takes its own kind's places, and not the machine's memory.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Collection, Sequence

import structlog

from penstock.errors import Stopped, TimeLimitExceeded
from penstock.runners.contract import Call, OnEnded

_log = structlog.get_logger("penstock.threads")


class ThreadRunner:
    """Makes calls in up to ``concurrency`` threads, which end when there is nothing to do for a while."""

    def __init__(
        self,
        concurrency: int,
        on_ended: OnEnded,
        *,
        name: str = "penstock",
        idle_seconds: float = 10.0,
        max_abandoned: int = 64,
    ) -> None:
        self.concurrency = concurrency
        self._on_ended = on_ended
        self._name = name
        self._idle_seconds = idle_seconds
        self._max_abandoned = max_abandoned
        lock = threading.Lock()
        self._condition = threading.Condition(lock)
        # The watch waits apart: a notice meant for a thread that waits for calls must not go to it.
        self._deadlines = threading.Condition(lock)
        self._waiting: deque[Call] = deque()
        self._running: set[Call] = set()
        self._threads = 0
        self._idle = 0
        self._abandoned = 0
        self._watching = False
        self._is_closed = False

    def start(self, calls: Sequence[Call]) -> None:
        """Queue the calls, with enough threads to make them."""
        with self._condition:
            self._waiting.extend(calls)
            self._spawn()
            self._condition.notify(len(calls))

    def resize(self, concurrency: int) -> None:
        """Surplus threads end when they are free; new ones are made for what waits."""
        with self._condition:
            self.concurrency = concurrency
            self._spawn()
            self._condition.notify_all()

    def stop(self, calls: Collection[Call]) -> None:
        """Drop those that wait; give up those that run."""
        for call in calls:
            call.stop.set = True
        with self._condition:
            dropped_calls = [call for call in self._waiting if call.stop.set]
            for call in dropped_calls:
                self._waiting.remove(call)
            given_up = [call for call in calls if self._give_up(call)]
        self._on_ended([(call, None, Stopped("stopped")) for call in (*dropped_calls, *given_up)])

    def start_waiting(self) -> None:
        """Make threads for what waits."""
        with self._condition:
            self._spawn()

    def stop_waiting(self) -> None:
        """Drop all that wait."""
        with self._condition:
            dropped_calls = list(self._waiting)
            self._waiting.clear()
        for call in dropped_calls:
            call.stop.set = True
        self._on_ended([(call, None, Stopped("stopped before it started")) for call in dropped_calls])

    def calls(self) -> Collection[Call]:
        """Those that wait and those that run, but not those given up."""
        with self._condition:
            return [*self._waiting, *self._running]

    def abandon(self, call: Call) -> None:
        """Give a running call up, or drop one that waits; it is not reported."""
        call.stop.set = True
        with self._condition:
            if not self._give_up(call) and call in self._waiting:
                self._waiting.remove(call)

    @property
    def abandoned(self) -> int:
        """Threads that were given up and still run."""
        return self._abandoned

    @property
    def is_exhausted(self) -> bool:
        """Is there no thread, and may none be made?"""
        return self._threads == 0 and self._abandoned >= self.concurrency + self._max_abandoned

    def close(self) -> None:
        """No new call starts; threads end when theirs does."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
            self._deadlines.notify_all()

    def _spawn(self) -> None:
        room = self.concurrency + self._max_abandoned - self._abandoned
        for _ in range(min(len(self._waiting) - self._idle, min(self.concurrency, room) - self._threads)):
            if not self._start_thread(self._work, f"{self._name}-{self._threads + 1}"):
                return  # the next start, or the watchdog, tries again
            self._threads += 1

    def _start_thread(self, target: object, name: str) -> bool:
        try:
            threading.Thread(target=target, name=name, daemon=True).start()  # type: ignore[arg-type]
        except RuntimeError as error:
            _log.error("no thread could be started", thread=name, error=str(error))
            return False
        return True

    def _give_up(self, call: Call) -> bool:
        """Give up a running call; its thread does not count any more."""
        if call not in self._running:
            return False
        self._running.discard(call)
        self._threads -= 1
        self._abandoned += 1
        if self._abandoned >= self._max_abandoned:
            _log.error(
                "threads that were given up still run; no more of them are replaced",
                threads=self._name,
                abandoned=self._abandoned,
            )
        self._spawn()
        return True

    def _work(self) -> None:
        while (call := self._next()) is not None:
            value, error = None, None
            try:
                value = call.function(call.argument)
            except BaseException as handler_error:  # noqa: BLE001 - whatever a handler raises is its outcome, exits included
                error = handler_error
            # Before its place is free: what is made of the answer may run the handler's code, within its time.
            self._on_ended([(call, value, error)])
            del value, error
            with self._condition:
                if call not in self._running:  # given up: somebody else has this thread's place
                    self._abandoned -= 1
                    self._spawn()
                    return
                self._running.discard(call)

    def _next(self) -> Call | None:
        with self._condition:
            self._idle += 1
            try:
                there = self._condition.wait_for(self._something_to_do, self._idle_seconds)
            finally:
                self._idle -= 1
            if self._is_closed or not there or self._threads > self.concurrency:
                self._threads -= 1
                return None
            call = self._waiting.popleft()
            self._running.add(call)
            if call.timeout is not None:
                call.set_deadline()
                if not self._watching:
                    self._watching = self._start_thread(self._watch, f"{self._name}-watch")
                self._deadlines.notify()
            return call

    def _something_to_do(self) -> bool:
        return bool(self._waiting) or self._is_closed or self._threads > self.concurrency

    def _watch(self) -> None:
        """End calls whose time is up, for as long as there are any with a limit."""
        while True:
            with self._condition:
                limited_calls = [call for call in self._running if call.deadline is not None]
                if self._is_closed or not limited_calls:
                    self._watching = False
                    return
                now = time.monotonic()
                given_up = [call for call in limited_calls if (call.deadline or now) <= now and self._give_up(call)]
                if not given_up:
                    self._deadlines.wait(min(call.look_again_in(now) for call in limited_calls))
                    continue
            for call in given_up:
                call.stop.set = True
            self._on_ended([(call, None, TimeLimitExceeded(call.too_late())) for call in given_up])
