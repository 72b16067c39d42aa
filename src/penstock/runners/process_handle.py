"""The parent's hold on one child process: what it is asked, the socket it is asked over, and what its answers mean.

The manager thread of :mod:`penstock.runners.processes` is the only one to use it.
"""

from __future__ import annotations

import contextlib
import multiprocessing.spawn
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, InvalidStateError
from dataclasses import dataclass
from typing import Any

import psutil

from penstock.errors import PayloadNotStorable, PayloadTooLarge
from penstock.lifecycle.error_text import describe_error
from penstock.runners import process_child
from penstock.runners.piece_stream import PieceQueue
from penstock.runners.process_child import LENGTH_BYTES, Preparation, RaisedError, Reply

MEBIBYTE = 1 << 20
READ_AT_ONCE = 1 << 18
_ENDINGS = (Reply.RETURNED, Reply.RAISED, Reply.NOT_STORABLE, Reply.TOO_LARGE)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may take before its process is killed."""

    timeout: float | None  # seconds of wall time, from the moment the handler begins
    memory_bytes: int | None  # resident memory of the child, libraries included; programs it starts are not counted

    def deadline(self) -> float | None:
        """When what begins now has to have ended, by the monotonic clock."""
        return None if self.timeout is None else time.monotonic() + self.timeout


@dataclass(slots=True, eq=False)
class Call:
    """One call on its way through the pool."""

    future: Future[Any]
    pickled: bytes
    limits: Limits
    pieces: PieceQueue | None = None
    """Where the pieces of its answer go, if it comes in pieces."""

    def settle(self, result: Any, error: Exception | None) -> None:
        """End it, with an error if there is one."""
        with contextlib.suppress(InvalidStateError):  # it was cancelled meanwhile, and that is its end
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)

    @property
    def memory_limit(self) -> str:
        """Its limit, for a person."""
        return f"{(self.limits.memory_bytes or 0) / MEBIBYTE:.1f} MiB"


class Nonsense(Exception):
    """A child wrote something that is not an answer."""


class ForeignError(RuntimeError):
    """What a handler raised, where that exception cannot be raised here."""

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(type_name, message)
        self.type_name = type_name
        self.message = message

    def __str__(self) -> str:
        return f"{self.type_name}: {self.message}"


class Child:
    """The parent's hold on one child process: the socket to it, and the call it has, if any.

    Only the manager thread uses it, so nothing is locked; nothing waits for the child but `reap`, when it is dead.
    """

    def __init__(self, result_bytes: int) -> None:
        self._longest_frame = result_bytes + 1
        self._incoming = bytearray()
        self._outgoing = memoryview(_frame(pickle.dumps(_preparation(result_bytes))))
        self.connection, theirs = socket.socketpair()
        self.connection.setblocking(False)
        program = [multiprocessing.spawn.get_executable(), "-P", process_child.__file__]
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [*map(os.fsdecode, program), str(theirs.fileno()), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except BaseException:
            self.connection.close()
            raise
        self.pid = self._process.pid
        self._meter: psutil.Process | None = None
        self.exit_descriptor = _open_exit_descriptor(self.pid)
        self.call: Call | None = None
        self.has_begun = False  # the handler of this call runs: from now on it is not to be run again
        self.calls = 0
        self.deadline: float | None = None
        self.sample_at: float | None = None
        self.killed = False
        self.is_unread = False  # nothing is read from it until somebody has taken pieces of its answer
        self.verdict: Exception | None = None

    @property
    def idle(self) -> bool:
        """Whether it waits for a call."""
        return self.call is None and not self.killed

    def give(self, call: Call, deadline: float, sample_at: float | None) -> None:
        """Hand it a call, to have begun by ``deadline``; `flush` sends it."""
        self.call, self.has_begun, self.deadline, self.sample_at = call, False, deadline, sample_at
        limit = (call.limits.memory_bytes or 0).to_bytes(LENGTH_BYTES)
        in_pieces = bytes([call.pieces is not None])
        self._outgoing = memoryview(b"".join((self._outgoing, _frame(limit, in_pieces, call.pickled))))

    def begin(self, deadline: float | None) -> None:
        """The handler runs, and must end by ``deadline``."""
        self.has_begun, self.deadline = True, deadline

    def rest(self) -> None:
        """The call has ended."""
        self.call = self.deadline = self.sample_at = None
        self.calls += 1

    def flush(self) -> int:
        """Send what the socket takes; returns the events to wait for."""
        try:
            self._outgoing = self._outgoing[self.connection.send(self._outgoing) :]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing = memoryview(b"")  # nobody reads any more: its death is noticed where we read
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)

    def receive(self, *, everything: bool) -> Iterator[bytes]:
        """The whole frames that have come; raises EOFError at the end and Nonsense at what cannot be a frame."""
        while True:
            try:
                chunk = self.connection.recv(READ_AT_ONCE)
            except BlockingIOError:
                return
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise EOFError
            self._incoming += chunk
            while (length := self._next_length()) is not None:
                frame = bytes(self._incoming[LENGTH_BYTES : LENGTH_BYTES + length])
                del self._incoming[: LENGTH_BYTES + length]
                yield frame
            if not everything:
                return

    def _next_length(self) -> int | None:
        if len(self._incoming) < LENGTH_BYTES:
            return None
        length = int.from_bytes(self._incoming[:LENGTH_BYTES])
        if not 0 < length <= self._longest_frame:
            raise Nonsense
        return length if len(self._incoming) >= LENGTH_BYTES + length else None

    def resident_bytes(self) -> int:
        """The resident memory it has now; 0 once it is dead."""
        try:
            self._meter = self._meter or psutil.Process(self.pid)
            return int(self._meter.memory_info().rss)
        except psutil.Error:
            return 0

    def holds_too_much_for(self, limits: Limits) -> bool:
        """Whether earlier calls left so much here that a call with these limits should get a fresh child."""
        return bool(limits.memory_bytes and self.calls and self.resident_bytes() > limits.memory_bytes // 2)

    def kill(self) -> None:
        """SIGKILL it and all its group, and stop reading from it. Must come before `reap`, also for a dead child."""
        self.killed = True
        self.deadline = self.sample_at = None
        self.connection.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody of the group is left (macOS: a zombie)
            os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> str:
        """Reap a dead child; the answer says how it died."""
        code = self._process.wait()
        if self.exit_descriptor is not None:
            os.close(self.exit_descriptor)
        if code == -signal.SIGKILL:
            return "was killed by SIGKILL: the system ran out of memory, or somebody outside did it"
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


@dataclass(frozen=True, slots=True)
class ChildAnswer:
    """What a child answered, in bytes: `read` makes objects of it, which may run the handler's own code."""

    pid: int
    reply: Reply
    frame: bytes
    raised_error: RaisedError | None

    @classmethod
    def of(cls, pid: int, reply: int, frame: bytes) -> ChildAnswer:
        """A frame that ends a call; raises Nonsense for any other."""
        if reply not in _ENDINGS:
            raise Nonsense
        if reply != Reply.RAISED:
            return cls(pid, Reply(reply), frame, None)
        try:
            pickled, type_name, message, text = pickle.loads(memoryview(frame)[1:])  # noqa: S301 bytes and texts
        except Exception as error:
            raise Nonsense from error
        return cls(pid, Reply.RAISED, b"", (pickled, type_name, message, text))

    def read(self) -> tuple[Any, Exception | None]:
        """The result, or what to raise instead of it."""
        if self.raised_error is not None:
            return None, self._exception(*self.raised_error)
        body = memoryview(self.frame)[1:]
        if self.reply is Reply.RETURNED:
            try:
                return pickle.loads(body), None  # noqa: S301 from our own child
            except BaseException as error:  # noqa: BLE001 __setstate__ is the handler's code
                why = describe_error(error)
                return None, PayloadNotStorable(f"the handler's result cannot be read back: {why}", field="result")
        text = str(body, "utf-8", "replace")
        if self.reply is Reply.NOT_STORABLE:
            return None, PayloadNotStorable(f"the handler returned what cannot be pickled: {text}", field="result")
        return None, PayloadTooLarge(f"the handler's result takes {text} bytes, more than the pool's result_bytes")

    def _exception(self, pickled: bytes | None, type_name: str, message: str, text: str) -> Exception:
        note = traceback_note(self.pid, text)
        if pickled is not None:
            # A class that cannot be imported here, an __init__ that needs more than `args`, notes that are no list …
            with contextlib.suppress(BaseException):
                original = pickle.loads(pickled)  # noqa: S301 from our own child
                # The last two mean something to a future and to an event loop, and SystemExit and its kind to a thread.
                if isinstance(original, Exception) and not isinstance(original, CancelledError | StopIteration):
                    original.add_note(note)
                    return original
        foreign = ForeignError(type_name, message)
        foreign.add_note(note)
        return foreign


def read_into(unread: Future[ChildAnswer], future: Future[Any]) -> None:
    """Give a plain future what an answer says."""
    if unread.cancelled():
        future.cancel()
        future.set_running_or_notify_cancel()
        return
    error: BaseException | None = unread.exception()
    result = None
    if error is None:
        result, error = unread.result().read()
    with contextlib.suppress(InvalidStateError):  # it was cancelled meanwhile, and that is its end
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def traceback_note(pid: int, text: str) -> str:
    """The child's traceback, as a note for the exception that stands for it here."""
    return f"In the child process {pid}:\n{text}"


def _preparation(result_bytes: int) -> Preparation:
    preparation_data = multiprocessing.spawn.get_preparation_data("penstock")
    main = {key: str(value) for key, value in preparation_data.items() if key.startswith("init_main_from")}
    return Preparation(sys_path=list(sys.path), sys_argv=list(sys.argv), main=main, result_bytes=result_bytes)


def _frame(*parts: bytes) -> bytes:
    return b"".join((sum(map(len, parts)).to_bytes(LENGTH_BYTES), *parts))


def _open_exit_descriptor(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
