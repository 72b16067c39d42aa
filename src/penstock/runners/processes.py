"""Handlers in child processes, with a limit on time and on memory that is kept by killing.

**Who kills whom.** One manager thread owns everything here: it alone starts children, writes to them, reads from
them, kills them and reaps them. Other threads leave a call in the queue, or cancel a future, and wake it. So there is
no lock around a child, and no way to signal a process id that has been reaped and given to somebody else: a child is
always killed before it is reaped, by the same thread. Each child leads a session of its own, and what is killed is its
whole process group, so the programs a handler started die with it (unless they left the group by `setsid`).

**A killed call ends when its process is gone.** A kill only sets the verdict; the future is ended by `_reap`, after the
child is reaped. Who reads TimeLimitExceeded knows that nothing of that handler runs any more. A child that died by
itself has no verdict, and the exit status becomes one: WorkerCrashed.

**Why a fresh interpreter for each child** (what multiprocessing calls spawn). Fork copies a parent with threads, locks
and database connections in it. A forkserver is quick, but puts a process between us and the child: its exit status and
its death signal are then the server's, and when the server dies nobody is left to start another. We start it with
`subprocess` rather than with multiprocessing's own spawn, because the session and /dev/null are then in place before
its first instruction, the parent's main module is imported only by calls that refer to it, and there is neither a
resource tracker left behind nor an exit hook that joins children for ever.

**The clock** of a call starts when the child says STARTED: a child's start and the import of the handler's module are
not the handler's time, or a kind with a short timeout would never get past a slow import. `start_timeout` bounds them.

**The races**, and why they are harmless:

- *A result arrives while its deadline passes.* One thread sees both: it reads first and then looks at the clock, and
  what comes after a kill is not read. The call has one end, and either of the two would be honest.
- *A child sends its result and dies.* What is on the socket is read before the child is buried, so the result counts.
- *An idle child dies and gets a call before we notice.* STARTED was not heard, so the handler has not begun: the call
  goes back to the head of the queue. A child that dies in its first call is not given that chance; it would die again.
- *A future is cancelled while it ends.* `Future` lets one of them win; the loser is ignored. A future is never marked
  as running, so `cancel()` works until the end, also through `asyncio.wrap_future`.
- *The parent dies.* The kernel kills each child when the thread that started it ends (PR_SET_PDEATHSIG speaks of the
  thread, not of the process: one more reason for one manager). A SIGKILLed parent cannot kill groups any more, so
  programs started by a handler then live until they miss its pipes.
- *A grandchild keeps the socket open after its child died.* The child's death is seen on a pidfd, not on the socket.
  Where there are none (not Linux), it is seen on the socket, and such a child only at its time limit.

Reads and writes never block: a child that stops in the middle of a 100 MB result delays nobody, and is killed on time.
An answer may come in pieces (:mod:`penstock.runners.piece_stream`); a child whose pieces nobody takes is not read from.
Nothing is allocated on a child's word: a frame longer than `result_bytes` is nonsense, and its child is killed.
Children are always ended by SIGKILL: what a handler registers with `atexit` does not run. A child still full of what
earlier calls left in it is replaced before it gets a call whose limit it would break through no fault of that call.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import pickle
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from penstock.errors import MemoryLimitExceeded, PayloadNotStorable, TimeLimitExceeded, WorkerCrashed
from penstock.lifecycle.error_text import describe_error
from penstock.runners.piece_stream import PieceQueue, PieceStream
from penstock.runners.process_child import Reply
from penstock.runners.process_handle import (
    MEBIBYTE,
    Call,
    Child,
    ChildAnswer,
    ForeignError,
    Limits,
    Nonsense,
    read_into,
    traceback_note,
)

__all__ = ["ChildAnswer", "ForeignError", "Limits", "NotStarted", "ProcessPool"]

MEMORY_SAMPLE_INTERVAL = 0.05
_CLOSING_SECONDS = 10.0


class NotStarted(WorkerCrashed):
    """There was no process for the handler, so it cannot have been the handler that ended it."""


class ProcessPool:
    """Up to ``size`` child processes, started when needed and used again; calls beyond that wait in order.

    Done-callbacks of its futures run in the manager thread: keep them short.
    """

    def __init__(
        self, size: int, *, recycle_after: int = 1000, start_timeout: float = 60.0, result_bytes: int = 256 * MEBIBYTE
    ) -> None:
        self._size = size
        self._recycle_after = recycle_after
        self.start_timeout = start_timeout
        self._result_bytes = result_bytes
        self._queue: collections.deque[Call] = collections.deque()
        self._cancelled_calls: collections.deque[Call] = collections.deque()
        self._taken_from: collections.deque[Future[ChildAnswer]] = collections.deque()
        self._children: dict[int, Child] = {}
        self._lock = threading.Lock()
        self._close_at: float | None = None
        self._selector = selectors.DefaultSelector()
        self._bell, self._ear = socket.socketpair()
        self._bell.setblocking(False)
        self._ear.setblocking(False)
        self._selector.register(self._ear, selectors.EVENT_READ)
        self._manager = threading.Thread(target=self._manage, name="penstock-process-pool", daemon=True)
        self._manager.start()
        atexit.register(self.close, 0.0)

    @property
    def processes(self) -> tuple[int, ...]:
        """The process ids of the children there are now."""
        return tuple(self._children.copy())

    @property
    def is_closed(self) -> bool:
        """Does it take no more calls: closed, or by a fault of its manager?"""
        return self._close_at is not None

    def submit(self, call: Callable[[Any], Any], argument: Any, limits: Limits) -> Future[Any]:
        """Have ``call(argument)`` run in a child; both travel by pickle, so the function needs an importable name."""
        unread = self.submit_unread(call, argument, limits)
        future: Future[Any] = Future()
        future.add_done_callback(lambda done_future: unread.cancel() if done_future.cancelled() else None)
        unread.add_done_callback(lambda _: read_into(unread, future))
        return future

    def submit_unread(self, call: Callable[[Any], Any], argument: Any, limits: Limits) -> Future[ChildAnswer]:
        """The same, but what the handler answered is read by whoever asks: that may run the handler's own code."""
        return self._queue_call(Future(), call, argument, limits)

    def stream(self, call: Callable[[Any], Iterable[Any]], argument: Any, limits: Limits) -> PieceStream:
        """Have ``call(argument)`` run in a child, and give what it yields as it comes; the time is for each piece."""
        future: Future[ChildAnswer] = Future()
        pieces = PieceQueue(lambda: self._report_room(future))
        stream = PieceStream(pieces, future)
        self._queue_call(future, call, argument, limits, pieces)
        return stream

    def _queue_call(
        self,
        future: Future[ChildAnswer],
        call: Callable[[Any], Any],
        argument: Any,
        limits: Limits,
        pieces: PieceQueue | None = None,
    ) -> Future[ChildAnswer]:
        try:
            pickled = pickle.dumps((call, argument), pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # noqa: BLE001 __reduce__ is anybody's code
            why = describe_error(error)
            future.set_exception(PayloadNotStorable(f"the call cannot be sent to a process: {why}", field="argument"))
            return future
        waiting = Call(future, pickled, limits, pieces)
        with self._lock:
            if self._close_at is not None:
                raise RuntimeError("this process pool is closed: it takes no more calls")
            self._queue.append(waiting)
        future.add_done_callback(
            lambda done_future: self._report_cancelled(waiting) if done_future.cancelled() else None
        )
        self._wake_manager()
        return future

    def cancel(self, future: Future[Any]) -> None:
        """End a call now: dropped if it waits, its process killed if it runs. The same as ``future.cancel()``."""
        future.cancel()

    def close(self, grace: float) -> None:
        """Cancel what waits, give what runs ``grace`` seconds, then kill; returns when no process is left."""
        with self._lock:
            close_at = time.monotonic() + grace
            self._close_at = close_at if self._close_at is None else min(self._close_at, close_at)
        self._wake_manager()
        if threading.current_thread() is not self._manager:
            self._manager.join(grace + _CLOSING_SECONDS)
            atexit.unregister(self.close)

    def _report_cancelled(self, call: Call) -> None:
        self._cancelled_calls.append(call)
        self._wake_manager()

    def _report_room(self, future: Future[ChildAnswer]) -> None:
        self._taken_from.append(future)
        self._wake_manager()

    def _wake_manager(self) -> None:
        with contextlib.suppress(OSError):  # full: it has been woken; closed: nobody is left to wake
            self._bell.send(b"\0")

    # From here on, the manager thread.

    def _manage(self) -> None:
        try:
            while self._close_at is None or self._children:
                for key, events in self._selector.select(self._pause()):
                    if key.data is None:
                        self._ear.recv(4096)
                    elif key.data.pid in self._children:
                        self._attend(key.data, events, has_died=key.fileobj is not key.data.connection)
                self._drop_cancelled()
                self._read_on()
                self._enforce_limits(time.monotonic())
                if self._close_at is None:
                    self._dispatch()
                else:
                    self._finish_running(self._close_at)
        finally:
            self._leave_nothing()

    def _pause(self) -> float | None:
        """Seconds until the next deadline."""
        alive = [child for child in self._children.values() if not child.killed]
        moments = [moment for child in alive for moment in (child.deadline, child.sample_at) if moment is not None]
        if self._close_at is not None and alive:
            moments.append(self._close_at)
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _dispatch(self) -> None:
        while self._queue:
            if self._queue[0].future.cancelled():
                self._queue.popleft()
                continue
            child = next((child for child in self._children.values() if child.idle), None)
            if child is not None and child.holds_too_much_for(self._queue[0].limits):
                self._kill(child, None)
                continue
            if child is None and len(self._children) >= self._size:
                return
            call = self._queue.popleft()
            try:
                child = child or self._start_child()
            except Exception as error:  # noqa: BLE001 whatever keeps a process from starting is the call's answer
                call.settle(None, NotStarted(f"no process could be started for the handler: {error}"))
                continue
            now = time.monotonic()
            sample_at = None if call.limits.memory_bytes is None else now + MEMORY_SAMPLE_INTERVAL
            child.give(call, now + self.start_timeout, sample_at)
            self._selector.modify(child.connection, child.flush(), child)

    def _start_child(self) -> Child:
        child = Child(self._result_bytes)
        self._children[child.pid] = child
        self._selector.register(child.connection, selectors.EVENT_READ, child)
        if child.exit_descriptor is not None:
            self._selector.register(child.exit_descriptor, selectors.EVENT_READ, child)
        return child

    def _attend(self, child: Child, events: int, *, has_died: bool) -> None:
        if not child.killed:
            if events & selectors.EVENT_WRITE:
                self._selector.modify(child.connection, child.flush(), child)
            self._listen(child, everything=has_died)
        if has_died:
            self._kill(child, None)  # what is left of its group
            self._reap(child)

    def _listen(self, child: Child, *, everything: bool) -> None:
        try:
            for frame in child.receive(everything=everything):
                self._hear(child, frame)
                if child.killed:
                    return
        except EOFError:
            self._kill(child, None)
        except Nonsense:
            self._kill(
                child, WorkerCrashed("the process that ran the handler wrote something invalid to the pool's socket")
            )

    def _hear(self, child: Child, frame: bytes) -> None:
        call = child.call
        if call is None:
            raise Nonsense
        match frame[0]:
            case Reply.STARTED:
                call.pickled = b""
                child.begin(call.limits.deadline())
            case Reply.PIECE if call.pieces is not None:
                call.pieces.put(frame)
                if not child.is_unread and call.pieces.hold():
                    child.is_unread = True
                    self._selector.unregister(child.connection)
                child.begin(None if child.is_unread else call.limits.deadline())
            case Reply.OUT_OF_MEMORY:
                error = MemoryLimitExceeded(f"the handler asked for more memory than its limit of {call.memory_limit}")
                error.add_note(traceback_note(child.pid, str(frame[1:], "utf-8", "replace")))
                self._kill(child, error)
            case reply:
                answer = ChildAnswer.of(child.pid, reply, frame)
                self._read_from(child)
                child.rest()
                if child.calls >= self._recycle_after:
                    self._kill(child, None)
                call.settle(answer, None)

    def _read_on(self) -> None:
        while self._taken_from:
            future = self._taken_from.popleft()
            for child in self._children.values():
                if child.call is not None and child.call.future is future and not child.killed:
                    self._read_from(child)
                    child.deadline = child.call.limits.deadline()

    def _read_from(self, child: Child) -> None:
        if child.is_unread:
            child.is_unread = False
            self._selector.register(child.connection, selectors.EVENT_READ, child)

    def _enforce_limits(self, now: float) -> None:
        for child in list(self._children.values()):
            call = child.call
            if call is None or child.killed:
                continue
            if child.deadline is not None and now >= child.deadline:
                self._kill(child, self._too_late(child, call))
            elif child.sample_at is not None and now >= child.sample_at and call.limits.memory_bytes is not None:
                child.sample_at = now + MEMORY_SAMPLE_INTERVAL
                if (resident := child.resident_bytes()) > call.limits.memory_bytes:
                    reason = f"the handler's process reached {resident / MEBIBYTE:.1f} MiB of memory"
                    self._kill(child, MemoryLimitExceeded(f"{reason}; its limit is {call.memory_limit}"))

    def _too_late(self, child: Child, call: Call) -> TimeLimitExceeded:
        if child.has_begun:
            return TimeLimitExceeded(f"the handler ran past its limit of {call.limits.timeout:g} s")
        return TimeLimitExceeded(f"the handler did not begin within {self.start_timeout:g} s: does its import hang?")

    def _drop_cancelled(self) -> None:
        while self._cancelled_calls:
            call = self._cancelled_calls.popleft()
            call.pickled = b""
            call.future.set_running_or_notify_cancel()  # tells those who wait in concurrent.futures.wait
            for child in [child for child in self._children.values() if child.call is call]:
                self._kill(child, None)

    def _finish_running(self, close_at: float) -> None:
        while self._queue:
            self._queue.popleft().future.cancel()
        for child in list(self._children.values()):
            if child.idle or time.monotonic() >= close_at:
                self._kill(child, None)
                if child.call is not None:
                    child.call.future.cancel()

    def _kill(self, child: Child, verdict: Exception | None) -> None:
        if child.killed:
            return
        child.verdict = verdict
        if not child.is_unread:
            self._selector.unregister(child.connection)
        child.kill()
        if child.exit_descriptor is None:
            self._reap(child)

    def _reap(self, child: Child) -> None:
        """Reap a child that is dead, or is just being killed, and end the call it leaves behind."""
        if child.exit_descriptor is not None:
            self._selector.unregister(child.exit_descriptor)
        ending = child.reap()
        del self._children[child.pid]
        call = child.call
        if call is None:
            return
        if child.verdict is None and not child.has_begun and child.calls:
            self._queue.appendleft(call)
        else:
            call.settle(None, child.verdict or WorkerCrashed(f"the process that ran the handler {ending}"))

    def _leave_nothing(self) -> None:
        """The end of the manager, asked for or by a fault of ours: no child, no open future, no descriptor."""
        with self._lock:
            self._close_at = time.monotonic() if self._close_at is None else self._close_at
        for child in list(self._children.values()):
            self._kill(child, None)
            if child.call is not None:
                child.call.future.cancel()
            if child.pid in self._children:
                self._reap(child)
        while self._queue:
            self._queue.popleft().future.cancel()
        self._drop_cancelled()
        for closable in (self._selector, self._bell, self._ear):
            closable.close()
