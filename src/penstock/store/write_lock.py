"""Whose turn it is to write, among the processes of one machine.

SQLite lets one write at a time, and whoever finds it taken sleeps and tries again: a busy worker, who takes it again
the moment it is free, can keep somebody who wants to cancel waiting for as long as there is work. So writers queue here
first. Two locks make it fair: who is next holds one while waiting for the other, and whoever has just written has to
become next again like everybody else. The threads of a process queue for its place in an ordinary lock.

Nothing depends on this. The locks are the kernel's, so a process that dies leaves none behind; where they cannot be
had, or somebody keeps his for longer than SQLite would wait, SQLite's own locks decide as they always do. Their files
are ours alone: another account that could open one could hold everybody's turn.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import structlog
from sqlalchemy.engine import URL

from penstock.private_files import open_own_file

if sys.platform != "win32":
    import fcntl

_CAN_LOCK = sys.platform != "win32"
_LOOK_AGAIN = 0.0005
_log = structlog.get_logger("penstock.write_lock")


class WriteLock:
    """A lock for the length of a ``with`` block; a thread that has it may enter again."""

    def __init__(self, path: str | None, *, patience: float) -> None:
        self._path = path if _CAN_LOCK else None
        self._patience = patience
        self._thread = threading.RLock()
        self._depth = 0
        self._next: int | None = None
        self._writing: int | None = None

    @classmethod
    def of(cls, url: URL, *, patience: float) -> WriteLock:
        """Those of the database that ``url`` names: its file's, if it has one."""
        name = url.database
        has_no_file = not name or name == ":memory:" or name.startswith("file:")
        return cls(None if has_no_file else str(Path(str(name)).resolve()), patience=patience)

    def __enter__(self) -> None:
        self._thread.acquire()
        self._depth += 1
        if self._depth == 1 and self._path is not None:
            try:
                self._queue(self._path)
            except BaseException:
                self.__exit__(None, None, None)
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            _let_go(self._writing)
        self._thread.release()

    def close(self) -> None:
        """Close the files; they are opened again when they are needed."""
        with self._thread:
            for descriptor in (self._next, self._writing):
                if descriptor is not None:
                    os.close(descriptor)
            self._next = self._writing = None

    def _queue(self, path: str) -> None:
        if self._next is None or self._writing is None:
            try:
                # One after the other: when the second cannot be opened, the first is still there for the next try.
                owner = _owner_of(path)
                self._next = self._next if self._next is not None else open_own_file(f"{path}-next", owner)
                self._writing = open_own_file(f"{path}-turn", owner)
            except OSError as error:  # a folder that is not ours to write in, or a disk that is full just now
                _log.debug("no turns for writers; SQLite's own locks decide", error=str(error))
                return
        give_up = time.monotonic() + self._patience
        try:
            if _try_lock(self._next, give_up):
                _try_lock(self._writing, give_up)
        finally:
            _let_go(self._next)


def _owner_of(path: str) -> int:
    try:
        return os.stat(path).st_uid  # noqa: PTH116
    except FileNotFoundError:  # a database that is not made yet will be ours
        return os.geteuid()


def _try_lock(lock: int, give_up: float) -> bool:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                return False
            time.sleep(_LOOK_AGAIN)
        except OSError:  # a file system without such locks
            return False
        else:
            return True


def _let_go(lock: int | None) -> None:
    if lock is not None:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)
