"""Processes for what libraries make of a stranger's file, with limits on time and memory that are kept by killing.

A picture of fifty megapixels takes a few kilobytes in a file and hundreds of megabytes once it is decoded; a decoder
may crash, or never return. In a server or a worker that would be everybody's memory and everybody's time. So whoever
opens a file with a library has that done here: the process is killed at its limit, and the caller is told why.

It is the pool of :mod:`penstock.runners.processes`, the same that runs handlers in processes. It is started with the
first call, and once for each process that was forked.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from typing import Any, TypeVar

from penstock.errors import TooManyRequests
from penstock.runners.processes import Limits, ProcessPool

__all__ = ["ChildProcesses", "Limits"]

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")


class ChildProcesses:
    """Up to ``size`` processes; beyond them ``max_waiting`` calls wait, and one more is refused.

    Functions, arguments and answers travel by pickle: a function is one at the top of a module. A call that passes a
    limit raises ``TimeLimitExceeded`` or ``MemoryLimitExceeded``, one whose process dies ``WorkerCrashed``.
    """

    def __init__(self, size: int, *, max_waiting: int | None = None) -> None:
        self._size = size
        self._max_calls = None if max_waiting is None else size + max_waiting
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None
        self._started_in = 0
        self._open_calls = 0

    def call(self, function: Callable[[Argument], Answer], argument: Argument, limits: Limits) -> Answer:
        """What ``function`` answers, in a process with these limits; who waits is a thread."""
        future = self._submit(function, argument, limits)
        try:
            answer: Answer = future.result()
        except BaseException:
            future.cancel()  # who waits was interrupted: nobody needs the answer any more
            raise
        return answer

    async def call_async(self, function: Callable[[Argument], Answer], argument: Argument, limits: Limits) -> Answer:
        """The same for a coroutine; cancelling it kills the process."""
        answer: Answer = await asyncio.wrap_future(self._submit(function, argument, limits))
        return answer

    def stream(
        self, function: Callable[[Argument], Iterator[Answer]], argument: Argument, limits: Limits
    ) -> Iterator[Answer]:
        """What ``function`` yields, as it comes; each value has the whole time limit, and closing this ends it."""
        with closing(self._running_pool().stream(function, argument, limits)) as pieces:
            yield from pieces

    def close(self) -> None:
        """Kill what runs; a later call starts new processes."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._started_in == os.getpid():
            pool.close(grace=0.0)

    def _submit(self, function: Callable[[Any], Any], argument: Any, limits: Limits) -> Future[Any]:
        with self._lock:
            if self._max_calls is not None and self._open_calls >= self._max_calls:
                raise TooManyRequests(
                    f"{self._open_calls} files are being looked at here already; retry in a moment",
                    retry_after=1.0,
                    code="TOO_MANY_LOOKS",
                )
            self._open_calls += 1
        try:
            future = self._running_pool().submit(function, argument, limits)
        except BaseException:
            self._end_call(None)
            raise
        future.add_done_callback(self._end_call)
        return future

    def _end_call(self, _future: object) -> None:
        with self._lock:
            self._open_calls -= 1

    def _running_pool(self) -> ProcessPool:
        with self._lock:
            # A forked process has the pool's object, and not the thread that manages it.
            if self._pool is None or self._pool.is_closed or self._started_in != os.getpid():
                self._pool, self._started_in = ProcessPool(self._size), os.getpid()
            return self._pool
