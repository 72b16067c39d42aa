"""What the tests of the process pool call, and how they see what becomes of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from penstock.errors import (
    Retryable,
)
from penstock.runners import processes
from penstock.runners.processes import Limits, ProcessPool

FREE = Limits(timeout=None, memory_bytes=None)
MEBIBYTE = 1 << 20
SOURCE = Path(processes.__file__).parents[2]
PATIENCE = 30.0

PoolFactory = Callable[..., ProcessPool]


def heard(fifo: Path) -> list[int]:
    """The numbers a handler announces; blocks until it does."""
    return [int(word) for word in fifo.read_text().split()]


def dies(pid: int) -> bool:
    """Whether a process is dead, or is so before our patience ends."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()  # select knows the first 1,024 descriptors only
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(PATIENCE * 1000))
    finally:
        os.close(descriptor)


# Handlers.


def own_pid(_: object) -> int:
    return os.getpid()


def announce_and_hang(fifo: str) -> None:
    Path(fifo).write_text(str(os.getpid()))
    threading.Event().wait()


def announce_and_spin(fifo: str) -> None:
    Path(fifo).write_text(str(os.getpid()))
    ctypes.PyDLL(None).pause()  # native code that never gives the interpreter lock back


def start_program_and_hang(fifo: str) -> None:
    program = subprocess.Popen(["sleep", "1000"])
    Path(fifo).write_text(f"{os.getpid()} {program.pid}")
    threading.Event().wait()


def terminate_a_program(_: object) -> int:
    program = subprocess.Popen(["sleep", "1000"])
    program.terminate()
    return program.wait()


def grow_slowly(_: object) -> None:
    hoard = []
    while True:
        hoard.append(b"x" * MEBIBYTE)
        threading.Event().wait(0.002)


def keep(size: int) -> int:
    globals()["kept"] = b"x" * size
    return os.getpid()


def catch_signals(_: object) -> int:
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    return os.getpid()


def session_and_group(_: object) -> tuple[int, int]:
    return os.getsid(0), os.getpgid(0)


def raise_retryable(_: object) -> None:
    raise Retryable("the shop answers 429", code="SHOP_BUSY", retry_after=30)


class NeedsTwo(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


def raise_what_cannot_travel(_: object) -> None:
    raise NeedsTwo("flour", "water")


def raise_memory_error(_: object) -> None:
    raise MemoryError("not ours")


def raise_stop_iteration(_: object) -> None:
    next(iter([]))


def return_lock(_: object) -> object:
    return threading.Lock()


def fork_and_exit(_: object) -> None:
    if os.fork() == 0:
        threading.Event().wait()
    os._exit(4)


def pool_socket() -> int:
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(link.name)).st_mode):
                return int(link.name)
    raise AssertionError("no socket")


def write_to_pool(data: bytes) -> None:
    os.write(pool_socket(), data)
    threading.Event().wait()


def append_line(path_and_line: tuple[str, str]) -> None:
    path, line = path_and_line
    with Path(path).open("a") as file:
        file.write(line + "\n")


def wait_for_file(fifo: str) -> str:
    return Path(fifo).read_text()


def arrive_late(seconds: float) -> str:
    threading.Event().wait(seconds)
    return "arrived"


class Late:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __reduce__(self) -> tuple[Callable[[float], str], tuple[float]]:
        return arrive_late, (self.seconds,)


class Greeter:
    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def greet(self, name: str) -> str:
        return f"{self.greeting}, {name}"
