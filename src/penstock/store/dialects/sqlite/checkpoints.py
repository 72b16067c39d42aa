"""Bringing SQLite's write-ahead log back into the database, in a writer's turn and at no other time.

Left to itself, SQLite does that after any commit that finds the log long, while others may write. Its versions 3.7.0 to
3.51.2 have a race there: a checkpoint that runs while another connection's commit begins the log anew can believe that
pages are in the database which are not, and the file is corrupt. So our connections never do it by themselves. Here one
connection holds SQLite's own write lock, so that nobody can commit, whoever he is, and a second one does the work.

The log's file is as long as the log: ``journal_size_limit=0`` cuts it when the log begins anew. So its size says when a
checkpoint is due. One that could not finish, because somebody still reads what is old, is tried again when as much has
been written once more, or after a second.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from urllib.parse import quote

import structlog

from penstock.store.dialects.sqlite.database_file import log_of

LOG_BYTES = 1000 * 4096
"""As long as SQLite's own default lets it grow: a thousand pages."""
_AGAIN_SECONDS = 1.0
_log = structlog.get_logger("penstock.store")


class Checkpoints:
    """When the next one is due, and how it is done."""

    def __init__(self) -> None:
        self._tried_bytes = 0
        self._tried_at = 0.0

    def run_if_due(self, path: str, writer: sqlite3.Connection) -> None:
        """Shorten the log if it is long; what ``writer`` has committed stays committed, whatever happens here."""
        try:
            length = os.stat(log_of(path)).st_size  # noqa: PTH116 - a Path costs more than the call, at every commit
        except OSError:
            return
        if not self._is_due(length):
            return
        self._tried_bytes, self._tried_at = length, time.monotonic()
        try:
            [synchronous] = writer.execute("PRAGMA synchronous").fetchone()
            _checkpoint(path, synchronous)
        except sqlite3.Error as error:
            # Somebody else writes just now, or the disk is full. The log holds everything; the next one tries again.
            _log.debug("the write-ahead log stays long for now", path=path, bytes=length, error=str(error))

    def _is_due(self, length: int) -> bool:
        if length < self._tried_bytes:  # it began anew
            self._tried_bytes = 0
        if length - self._tried_bytes >= LOG_BYTES:
            return True
        return length >= LOG_BYTES and time.monotonic() - self._tried_at >= _AGAIN_SECONDS


def _checkpoint(path: str, synchronous: int) -> None:
    address = f"file:{quote(path)}?mode=rw"
    with (
        closing(sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)) as guard,
        closing(sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)) as link,
    ):
        link.execute(f"PRAGMA synchronous={synchronous}")
        guard.execute("BEGIN IMMEDIATE")
        # PASSIVE, which waits for nobody. The other modes need the write lock for themselves, and where they do not get
        # it they go on without.
        link.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        guard.execute("ROLLBACK")
