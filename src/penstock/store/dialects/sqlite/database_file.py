"""Is the file that we have open still the one at its path?

SQLite does not ask. A file that is deleted or replaced while it is open stays open: everything that is written to it
from then on is gone with the last connection. So every connection remembers which file it opened, and is compared with
the path each time it is used; that is one ``stat``.

A deleted file is an error until it is back; it is never made anew behind its users' backs. A file in its place is
said once, as an error, and the next call opens it. Two kinds of files are not opened: an empty one, and one that lies
beside the write-ahead log of its predecessor, because SQLite would write the changes of the one into the other.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from penstock.errors import StoreUnavailable
from penstock.private_files import create_private_file, make_private

_log = structlog.get_logger("penstock.store")
_OWN_FILES = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps; what it makes later has the permissions of the first."""

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """What a connection has opened."""

    path: str
    identity: Identity | None
    log_identity: Identity | None
    """That of the write-ahead log."""

    @classmethod
    def of(cls, connection: sqlite3.Connection) -> OpenedFile | None:
        """The file of a connection; None for a database in memory."""
        [_, _, path] = connection.execute("PRAGMA database_list").fetchone()
        return cls(path, identity_of(path), identity_of(log_of(path))) if path else None


class DatabaseFile:
    """The file of one engine, and which one it was when it was last opened."""

    def __init__(self) -> None:
        self._latest: OpenedFile | None = None
        self._announced_identity: Identity | None = None

    def is_current(self, file: OpenedFile | None) -> bool:
        """May a connection to this file still be used? False when there is another file, which has been said."""
        if file is None:
            return True
        there = identity_of(file.path)
        if there == file.identity:
            return True
        if there is None:
            raise StoreUnavailable(
                f"the database file {file.path} is gone: put it back, or restart the program to begin with a new one",
                code="DATABASE_FILE_GONE",
            )
        if file.log_identity is not None and identity_of(log_of(file.path)) == file.log_identity:
            raise StoreUnavailable(
                f"the database file {file.path} was replaced, but the write-ahead log of the old one is still beside "
                f"it: stop all programs that use it, and remove {log_of(file.path)}",
                code="DATABASE_FILE_REPLACED",
            )
        if there != self._announced_identity:
            self._announced_identity = there
            _log.error("the database file was replaced", path=file.path)
            raise StoreUnavailable(
                f"the database file {file.path} was replaced by another one, which is used from the next call on",
                code="DATABASE_FILE_REPLACED",
            )
        return False

    def before_opening(self) -> None:
        """A new connection would make a file that is gone, and believe whatever lies in its place."""
        self.is_current(self._latest)

    def make(self, name: str | None) -> None:
        """Make the file of this name before SQLite does: it would let other accounts read it."""
        if not name or name == ":memory:" or name.startswith("file:"):
            return
        path = Path(name)
        if not path.exists():
            with suppress(OSError):  # SQLite says better why it cannot be made
                create_private_file(path)

    def open(self, connection: sqlite3.Connection) -> OpenedFile | None:
        """Remember what a new connection has opened; nobody else may open that."""
        file = OpenedFile.of(connection)
        if file is not None and (self._latest is None or self._latest.identity != file.identity):
            for ending in _OWN_FILES:
                make_private(f"{file.path}{ending}")
        self._latest = file
        return file

    def refuse_empty(self, connection: sqlite3.Connection) -> None:
        """A file that came in place of another one must have something in it."""
        if self._latest is None or identity_of(self._latest.path) == self._latest.identity:
            return
        [version] = connection.execute("PRAGMA schema_version").fetchone()
        if version == 0:
            raise StoreUnavailable(
                f"the database file {self._latest.path} was replaced by an empty one: put the right one in its place, "
                "or restart the program to begin with a new one",
                code="DATABASE_FILE_REPLACED",
            )

    def forget(self) -> None:
        """All connections are closed: whatever is there next is right."""
        self._latest = self._announced_identity = None


def identity_of(path: str) -> Identity | None:
    """Which file is at this path; None when there is none."""
    # Never by opening it: closing the descriptor would drop all locks that SQLite holds on the file in this process.
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path costs more than the call, at every transaction
    except OSError:
        return None
    return status.st_dev, status.st_ino


def log_of(path: str) -> str:
    """Where SQLite keeps the write-ahead log of a database."""
    return f"{path}-wal"
