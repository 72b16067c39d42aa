"""Keeping uploaded files: bytes on disk by their SHA-256, a record in the database.

The bytes are written to a temporary name, flushed to the disk and then renamed, before the record is written: so a
record never points at bytes that are not whole. Interrupted in between, a file without a record is left, which costs
room and nothing else; the same content written again takes its place.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol
from uuid import UUID

from uuid_utils.compat import uuid7

from penstock.errors import FileNotFound, PayloadTooLarge
from penstock.lifecycle.bounds import FILE_NAME, MEDIA_TYPE, OWNER
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.files import path_of
from penstock.lifecycle.payloads import storable_text
from penstock.private_files import make_private_folder
from penstock.store.queries import files as queries
from penstock.store.transaction import Transaction

_READ_AT_ONCE = 1 << 20
_BEING_RECORDED_SECONDS = 3600.0
"""Bytes that were written so lately may be of a file whose record is still to come."""


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """Bytes that are safely on disk; no record of them is written yet."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An uploaded file."""

    id: UUID
    user_id: str | None
    name: str
    media_type: str | None
    size_bytes: int
    sha256: str
    created_at: datetime


class Readable(Protocol):
    """Anything bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""


class FileStore:
    """A folder that keeps bytes by their SHA-256."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def keep(self, stream: Readable, *, max_bytes: int | None = None) -> KeptBytes:
        """Write a stream to disk, at most ``max_bytes`` bytes of it."""
        make_private_folder(self.directory)
        digest, size = sha256(), 0
        with self._temporary() as (path, out):
            while chunk := stream.read(_READ_AT_ONCE):
                size += len(chunk)
                if max_bytes is not None and size > max_bytes:
                    raise PayloadTooLarge(
                        f"the file is larger than {max_bytes:,} bytes", field="file", code="FILE_TOO_LARGE"
                    )
                digest.update(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
            target = self.path(digest.hexdigest())
            make_private_folder(target.parent)
            with self._lock(fcntl.LOCK_SH):
                path.replace(target)
            _flush_directory(target.parent)
        return KeptBytes(digest.hexdigest(), size)

    def path(self, digest: str) -> Path:
        """Where the bytes of that SHA-256 are."""
        return path_of(self.directory, digest)

    def discard(self, digest: str, *, unless: Callable[[], bool]) -> bool:
        """Delete the bytes of a SHA-256, unless they are young or somebody says that they are wanted; were they?

        Who keeps a file writes the bytes first and records them then: the same bytes that were written within the last
        hour are such a file's. While this looks and deletes, no file is put in place.
        """
        path = self.path(digest)
        if not self.directory.is_dir():
            return False
        with self._lock(fcntl.LOCK_EX):
            try:
                age = time.time() - path.stat().st_mtime
            except FileNotFoundError:
                return False
            if age < _BEING_RECORDED_SECONDS or unless():
                return False
            path.unlink(missing_ok=True)
        return True

    @contextmanager
    def _lock(self, how: int) -> Iterator[None]:
        """Let no other process put files in place while one deletes."""
        handle = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, how)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def _temporary(self) -> Iterator[tuple[Path, BinaryIO]]:
        handle, name = tempfile.mkstemp(dir=self.directory, prefix=".incoming-")
        path = Path(name)
        try:
            with os.fdopen(handle, "wb") as out:
                yield path, out
        finally:
            path.unlink(missing_ok=True)


def _flush_directory(directory: Path) -> None:
    """A rename is only safe once its directory is on disk too."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def record_file(
    transaction: Transaction, kept_bytes: KeptBytes, *, name: str, owner: str | None, media_type: str | None
) -> StoredFile:
    """Record a file whose bytes are kept; only the last part of its name is, and only as text."""
    plain = storable_text(name.replace("\\", "/").rpartition("/")[2]).strip()
    FILE_NAME.require(plain)
    if owner is not None:
        OWNER.require(owner)
    if media_type:
        MEDIA_TYPE.require(media_type)
    file_id: UUID = uuid7()
    new = queries.NewFile(
        id=file_id,
        user_id=owner,
        name=plain,
        media_type=media_type or None,
        size_bytes=kept_bytes.size_bytes,
        sha256=kept_bytes.sha256,
    )
    queries.insert_file(transaction, new)
    return get_file(transaction, file_id, SYSTEM)


def get_file(transaction: Transaction, file_id: UUID, caller: Caller) -> StoredFile:
    """The record of a file the caller may see."""
    row = queries.file_by_id(transaction, file_id, caller)
    if row is None:
        raise FileNotFound(f"there is no file {file_id}")
    return StoredFile(*row)
