"""Handlers that child processes can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from penstock import ItemContext, Permanent


def double(item: ItemContext) -> int:
    """Twice the input."""
    return int(item.input["n"]) * 2


async def double_slowly(item: ItemContext) -> int:
    """The same, as a coroutine."""
    return int(item.input["n"]) * 2


def spin(item: ItemContext) -> None:
    """Never come back."""
    while True:
        time.sleep(0.01)


def swell(item: ItemContext) -> int:
    """Take more memory than anyone has."""
    hoard = []
    while True:
        hoard.append(bytearray(8 * 1024 * 1024))


def vanish(item: ItemContext) -> None:
    """End the process without a word."""
    os._exit(7)


def refuse(item: ItemContext) -> None:
    """Say what is wrong, from another process."""
    raise Permanent("no such thing", code="NO_SUCH_THING")


def same(item: ItemContext) -> object:
    """The input."""
    return item.input


def fail(item: ItemContext) -> None:
    """Raise what a kind may classify."""
    raise LookupError("410")


async def fail_slowly(item: ItemContext) -> None:
    """The same, as a coroutine."""
    raise LookupError("410")


def spin_deaf(item: ItemContext) -> None:
    """Never come back, whatever signal comes; say where we are."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    Path(item.params).touch()
    spin(item)


def wait_for_file(path: Path, seconds: float) -> None:
    """Until a child process has written it."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.01)
