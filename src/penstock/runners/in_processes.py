"""Handlers in child processes that are killed for real when they take too long or too much."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial

from penstock.errors import Stopped
from penstock.runners.child_call import make_call
from penstock.runners.contract import Call, EndedCall, OnEnded, Unread
from penstock.runners.processes import ChildAnswer, Limits, ProcessPool


class ProcessRunner:
    """Makes calls in a pool of processes; the function and its argument travel by pickle.

    What a handler answered is not read here: an object's way back from bytes is the handler's code, and this is the
    thread that kills the other processes on time.
    """

    abandoned = 0
    is_exhausted = False

    def __init__(
        self, concurrency: int, on_ended: OnEnded, *, memory_bytes: int | None, calls_per_process: int = 1000
    ) -> None:
        self.concurrency = self._max_concurrency = concurrency
        self._on_ended = on_ended
        self._memory_bytes = memory_bytes
        self._pool = ProcessPool(concurrency, recycle_after=calls_per_process)
        self._is_closed = False
        self._lock = threading.Lock()
        self._waiting: deque[Call] = deque()
        self._running: dict[Call, Future[ChildAnswer] | None] = {}

    def start(self, calls: Sequence[Call]) -> None:
        """Give the pool as many as it has processes, and the others when it has ended some."""
        with self._lock:
            self._waiting.extend(calls)
        self._feed()

    def resize(self, concurrency: int) -> None:
        """As many of the pool's processes as that are used."""
        self.concurrency = min(concurrency, self._max_concurrency)
        self._feed()

    def stop(self, calls: Collection[Call]) -> None:
        """Kill the processes of those that run; drop the others."""
        for call in calls:
            call.stop.set = True
        with self._lock:
            futures = [future for call in calls if (future := self._running.get(call)) is not None]
        self._drop([call for call in tuple(self._waiting) if call.stop.set])
        for future in futures:
            self._pool.cancel(future)

    def start_waiting(self) -> None:
        """Feed the pool, or a new one should its manager have failed."""
        with self._lock:
            if self._pool.is_closed and not self._is_closed:
                self._pool = ProcessPool(self._max_concurrency)
        self._feed()

    def stop_waiting(self) -> None:
        """Drop all that wait."""
        self._drop(tuple(self._waiting))

    def calls(self) -> Collection[Call]:
        """Those that wait and those that run."""
        with self._lock:
            return [*self._waiting, *self._running]

    def abandon(self, call: Call) -> None:
        """Kill its process."""
        self.stop([call])

    def close(self) -> None:
        """Kill what still runs."""
        self._is_closed = True
        self._pool.close(grace=0)

    def _drop(self, calls: Sequence[Call]) -> None:
        ended_calls: list[EndedCall] = []
        for call in calls:
            with self._lock, contextlib.suppress(ValueError):  # it has started meanwhile
                self._waiting.remove(call)
                call.stop.set = True
                ended_calls.append((call, None, Stopped("stopped before it started")))
        self._on_ended(ended_calls)

    def _feed(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or len(self._running) >= self.concurrency:
                    return
                call = self._waiting.popleft()
                self._running[call] = None
            limits = Limits(timeout=call.timeout, memory_bytes=self._memory_bytes)
            if call.timeout is not None:  # the pool's own clock starts later; this one is for whoever watches the pool
                call.deadline = time.monotonic() + self._pool.start_timeout + call.timeout
            try:
                future = self._pool.submit_unread(make_call, (call.function, call.argument), limits)
            except Exception as error:  # noqa: BLE001 - a function or an argument that cannot travel is its outcome
                with self._lock:
                    del self._running[call]
                self._on_ended([(call, None, error)])
                continue
            with self._lock:
                self._running[call] = future
            future.add_done_callback(partial(self._finish, call))
            if call.stop.set:
                self._pool.cancel(future)

    def _finish(self, call: Call, future: Future[ChildAnswer]) -> None:
        try:
            error = future.exception()
        except CancelledError:
            call.stop.set = True
            self._on_ended([(call, None, Stopped("stopped"))])
        else:
            self._on_ended([(call, None if error is not None else Unread(future.result().read), error)])
        with self._lock:
            self._running.pop(call, None)
        self._feed()
