"""Handlers that child processes can import."""

from __future__ import annotations

import os
import time

from penstock import Permanent, WorkItem


def double(item: WorkItem) -> int:
    """Twice the input."""
    return int(item.input["n"]) * 2


async def double_slowly(item: WorkItem) -> int:
    """The same, as a coroutine."""
    return int(item.input["n"]) * 2


def spin(item: WorkItem) -> None:
    """Never come back."""
    while True:
        time.sleep(0.01)


def swell(item: WorkItem) -> int:
    """Take more memory than anyone has."""
    hoard = []
    while True:
        hoard.append(bytearray(8 * 1024 * 1024))


def vanish(item: WorkItem) -> None:
    """End the process without a word."""
    os._exit(7)


def refuse(item: WorkItem) -> None:
    """Say what is wrong, from another process."""
    raise Permanent("no such thing", code="NO_SUCH_THING")
