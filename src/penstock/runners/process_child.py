"""The child's side of the process pool: read a call, run it, write how it ended.

The pool starts this file as a script, by its path. So a child begins without importing `penstock` (and with it
SQLAlchemy and the rest): it holds nothing but the standard library until a call's own pickle asks for the
handler's module. The parent imports the file too, for the words both sides speak.

Both directions of the socket carry frames: eight bytes of length, then that many bytes. The parent sends one
`Preparation`, then calls (eight bytes of memory limit, one that says whether its answer comes in pieces, then the
pickle of function and argument). The child answers each call with STARTED, at the moment the handler begins, then with
a PIECE for each value of an answer in pieces, and then with exactly one other `Reply`.
"""

from __future__ import annotations

import contextlib
import enum
import io
import os
import pickle
import resource
import signal
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypedDict

LENGTH_BYTES = 8
CALL_HEADER_BYTES = LENGTH_BYTES + 1
PR_SET_PDEATHSIG = 1
MAX_TEXT = 50_000
MAX_ERROR_BYTES = 1 << 20


class Reply(enum.IntEnum):
    """The first byte of a child's frame: what the rest of it says."""

    STARTED = 1  # nothing
    RETURNED = 2  # the pickled result
    RAISED = 3  # a pickled RaisedError
    OUT_OF_MEMORY = 4  # the traceback's text
    NOT_STORABLE = 5  # why the result cannot be pickled
    TOO_LARGE = 6  # how large the result is
    PIECE = 7  # a pickled value of an answer that comes in pieces


class Preparation(TypedDict):
    """What a child must know before its first call."""

    sys_path: list[str]
    sys_argv: list[str]
    main: dict[str, str]  # for multiprocessing.spawn.prepare; empty where the parent's main cannot be imported again
    result_bytes: int


RaisedError = tuple[bytes | None, str, str, str]  # the pickled exception, if it has one; type name; message; traceback


class _ResultNotStorable(Exception):
    """The handler's result cannot be pickled."""


class _CallUnpickler(pickle.Unpickler):
    """Imports the parent's main module when, and only when, a call refers to it."""

    def __init__(self, frame: io.BytesIO, preparation: Preparation) -> None:
        super().__init__(frame)
        self._preparation = preparation

    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__" and self._preparation["main"]:
            _import_main_of_parent(self._preparation["main"])
            self._preparation["main"] = {}
        return super().find_class(module, name)


def main(descriptor: int, parent: int) -> None:
    """Serve calls until the parent closes its end."""
    os.set_inheritable(descriptor, False)
    _leave_signals_to_the_parent()
    _die_with(parent)
    first = _read_frame(descriptor)
    if first is None:
        return
    preparation: Preparation = pickle.loads(first)  # noqa: S301 the parent wrote it
    sys.path[:] = preparation["sys_path"]
    sys.argv[:] = preparation["sys_argv"]
    while (frame := _read_frame(descriptor)) is not None:
        memory_bytes, in_pieces = int.from_bytes(frame[:LENGTH_BYTES]), bool(frame[LENGTH_BYTES])
        pickled = io.BytesIO(frame)
        pickled.seek(CALL_HEADER_BYTES)
        del frame
        reply, body = _run(descriptor, pickled, memory_bytes, preparation, in_pieces=in_pieces)
        if len(body) > preparation["result_bytes"]:
            reply, body = Reply.TOO_LARGE, str(len(body)).encode()
        # The parent may kill this process at any moment after the reply, and what is buffered would be lost.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):  # a handler may have put anything in their place
                stream.flush()
        _write_frame(descriptor, reply, body)
        del body
    _end_with_group()


def _run(
    descriptor: int, pickled: io.BytesIO, memory_bytes: int, preparation: Preparation, *, in_pieces: bool
) -> tuple[Reply, bytes]:
    """Run one call and say how it ended, whatever it did."""
    try:
        call, argument = _CallUnpickler(pickled, preparation).load()
        pickled.close()
        _write_frame(descriptor, Reply.STARTED, b"")
        # The result is pickled within the limits too: it can be as large, and its __reduce__ is the handler's code.
        with _memory_limited(memory_bytes):
            if in_pieces:
                return _send_pieces(descriptor, call(argument), preparation["result_bytes"])
            return Reply.RETURNED, _pickle_result(call(argument))
    except _ResultNotStorable as error:
        return Reply.NOT_STORABLE, str(error).encode(errors="replace")
    except MemoryError as error:
        if memory_bytes:
            return Reply.OUT_OF_MEMORY, _traceback_of(error).encode(errors="replace")
        return Reply.RAISED, _pickle_error(error)
    except BaseException as error:  # noqa: BLE001 also SystemExit: a handler does not decide when its process ends
        return Reply.RAISED, _pickle_error(error)


def _send_pieces(descriptor: int, pieces: Iterable[Any], most_bytes: int) -> tuple[Reply, bytes]:
    """Send what a call yields, each value at once; the parent does not read on while too many wait there."""
    for piece in pieces:
        body = _pickle_result(piece)
        if len(body) > most_bytes:
            return Reply.TOO_LARGE, str(len(body)).encode()
        _write_frame(descriptor, Reply.PIECE, body)
    return Reply.RETURNED, _pickle_result(None)


def _pickle_result(result: Any) -> bytes:
    try:
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 also what its __reduce__ raises
        why = f"{_class_name(error)}: {_text_of(error)}"
        raise _ResultNotStorable(f"a {_class_name(result)} ({why})") from None


def _pickle_error(error: BaseException) -> bytes:
    pickled: bytes | None = None
    with contextlib.suppress(BaseException):
        pickled = pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
        if len(pickled) > MAX_ERROR_BYTES:
            pickled = None
    raised_error: RaisedError = (pickled, _class_name(error), _text_of(error), _traceback_of(error))
    return pickle.dumps(raised_error, pickle.HIGHEST_PROTOCOL)


# An exception is the handler's object, and may fail or lie wherever it is asked. The parent's own way of reading one
# is in a package that would have to be imported here.


def _class_name(value: object) -> str:
    name: str = type.__dict__["__qualname__"].__get__(type(value))
    return str.__getitem__(name, slice(200))


def _text_of(error: BaseException) -> str:
    try:
        return str.__getitem__(str(error), slice(MAX_TEXT))
    except BaseException:  # noqa: BLE001 the handler's own __str__
        return "(its message cannot be read)"


def _traceback_of(error: BaseException) -> str:
    try:
        import traceback

        # The first frame is this module's own, and of no use to who reads it.
        outermost = error.__traceback__.tb_next if error.__traceback__ else None
        text = "".join(traceback.format_exception(type(error), error, outermost))
    except BaseException:  # noqa: BLE001 messages, notes and causes are the handler's
        return f"{_class_name(error)}: its traceback cannot be read"
    return text[-MAX_TEXT:]


@contextlib.contextmanager
def _memory_limited(memory_bytes: int) -> Iterator[None]:
    """Make an allocation that alone would pass the limit fail at once, as a MemoryError.

    RLIMIT_DATA and not RLIMIT_AS: Linux counts private writable memory in it (since 4.7), which is what a handler
    allocates; RLIMIT_AS counts mapped files, shared libraries and address space that is reserved and never touched
    (malloc's arenas take 64 MB for each thread), so a fair value for it does not exist. What the process has
    already when the handler begins, its libraries included, is added on top. The finer limit, on resident memory,
    is the parent's.
    """
    if not memory_bytes or sys.platform != "linux":
        yield
        return
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 pathlib would be most of this child's imports
        baseline = int(statm.read().split()[5]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = baseline + memory_bytes
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _import_main_of_parent(main_of_parent: dict[str, str]) -> None:
    from multiprocessing import process, spawn

    # As in multiprocessing: a main without `if __name__ == "__main__"` that starts a pool of its own is refused
    # there instead of starting children for ever.
    current = process.current_process()
    setattr(current, "_inheriting", True)  # noqa: B010 not in its type
    try:
        spawn.prepare(main_of_parent)
    finally:
        delattr(current, "_inheriting")


def _leave_signals_to_the_parent() -> None:
    """Survive a SIGINT or SIGTERM meant for the whole program.

    They are caught and not ignored: a program which the handler starts inherits what is ignored, and its own
    `terminate()` on it would do nothing, while what is caught falls back to the default there.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)


def _die_with(parent: int) -> None:
    """Have this process killed when its parent dies, even while a handler holds the interpreter."""
    if not _killed_by_kernel_with_parent():
        import threading

        threading.Thread(target=_watch_parent, args=(parent, 1.0), daemon=True).start()
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _killed_by_kernel_with_parent() -> bool:
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL)) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def _watch_parent(parent: int, interval: float) -> None:
    """The portable way: slower by the interval, and helpless while native code keeps the interpreter lock."""
    import threading

    never = threading.Event()
    while os.getppid() == parent:
        never.wait(interval)
    _end_with_group()


def _end_with_group() -> NoReturn:
    """End, with whatever a handler left running: a thread, a program.

    By our own id and not by 0: if we did not lead the group, 0 would be the parent's, and everything in it.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _read_frame(descriptor: int) -> bytes | None:
    """The next frame; None when the parent has closed its end."""
    header = _read_exactly(descriptor, LENGTH_BYTES)
    return None if header is None else _read_exactly(descriptor, int.from_bytes(header))


def _read_exactly(descriptor: int, length: int) -> bytes | None:
    chunks: list[bytes] = []
    while length:
        try:
            chunk = os.read(descriptor, min(length, 1 << 20))
        except ConnectionResetError:  # it closed with a reply of ours unread
            return None
        if not chunk:
            return None
        chunks.append(chunk)
        length -= len(chunk)
    return b"".join(chunks)


def _write_frame(descriptor: int, reply: Reply, body: bytes) -> None:
    # In two parts, so that a large result is not copied once more under a memory limit.
    for part in ((len(body) + 1).to_bytes(LENGTH_BYTES) + bytes([reply]), body):
        rest = memoryview(part)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest) :]
            except (BrokenPipeError, ConnectionResetError):  # nobody is there to read it
                _end_with_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
