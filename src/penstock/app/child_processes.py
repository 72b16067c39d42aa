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
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import TypeVar

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
        self._places = None if max_waiting is None else Places(size + max_waiting)
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None
        self._started_in = 0

    def call(
        self, function: Callable[[Argument], Answer], argument: Argument, limits: Limits, *, user: str | None = None
    ) -> Answer:
        """What ``function`` answers, in a process with these limits; who waits is a thread.

        Where the number of calls is bounded, those of one ``user`` are made one after the other.
        """
        with nullcontext() if self._places is None else self._places.take(user or ""):
            future = self._running_pool().submit(function, argument, limits)
            try:
                answer: Answer = future.result()
            except BaseException:
                future.cancel()  # who waits was interrupted: nobody needs the answer any more
                raise
            return answer

    async def call_async(self, function: Callable[[Argument], Answer], argument: Argument, limits: Limits) -> Answer:
        """The same for a coroutine, of which any number may wait; cancelling it kills the process."""
        answer: Answer = await asyncio.wrap_future(self._running_pool().submit(function, argument, limits))
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

    def _running_pool(self) -> ProcessPool:
        with self._lock:
            # A forked process has the pool's object, and not the thread that manages it.
            if self._pool is None or self._pool.is_closed or self._started_in != os.getpid():
                self._pool, self._started_in = ProcessPool(self._size), os.getpid()
            return self._pool


class Places:
    """A bound on calls that are made or wait, a quarter of them for each user, who has one made at a time.

    So whoever sends files that take a minute each keeps one process and some places, and nobody else out.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._of_a_user = max(1, count // 4)
        self._lock = threading.Lock()
        self._taken_by: Counter[str] = Counter()
        self._turns: dict[str, threading.Lock] = {}

    @contextmanager
    def take(self, user: str) -> Iterator[None]:
        """A place for the length of a ``with`` block, once it is this user's turn."""
        with self._lock:
            if self._taken_by[user] >= self._of_a_user or self._taken_by.total() >= self._count:
                raise TooManyRequests(
                    "too many files are being looked at here, or too many of yours: retry in a moment",
                    retry_after=1.0,
                    code="TOO_MANY_LOOKS",
                )
            self._taken_by[user] += 1
            turn = self._turns.setdefault(user, threading.Lock())
        try:
            with turn:
                yield
        finally:
            with self._lock:
                self._taken_by[user] -= 1
                if not self._taken_by[user]:
                    del self._taken_by[user], self._turns[user]
