"""Keeping uploaded files: bytes on disk by their SHA-256, a record in the database.

The bytes are written to a temporary name, flushed to the disk and then renamed, before the record is written: so a
record never points at bytes that are not whole. Interrupted in between, a file without a record is left, which costs
room and nothing else; the same content written again takes its place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol
from uuid import UUID

from penstock.errors import FileNotFound, PayloadTooLarge
from penstock.lifecycle.bounds import FILE_NAME, MEDIA_TYPE, OWNER
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.files import path_of
from penstock.lifecycle.payloads import storable_text
from penstock.private_files import make_private_folder
from penstock.store.queries import files as queries
from penstock.store.transaction import Transaction

_READ_AT_ONCE = 1 << 20


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


@dataclass(frozen=True, slots=True)
class ReceivedBytes:
    """Bytes on disk that somebody looks at before they are kept."""

    path: Path
    target: Path
    sha256: str
    size_bytes: int

    def keep(self) -> KeptBytes:
        """Flush them to the disk, and give them their name."""
        _flush(self.path)
        make_private_folder(self.target.parent)
        self.path.replace(self.target)
        _flush(self.target.parent)
        return KeptBytes(self.sha256, self.size_bytes)


class FileStore:
    """A folder that keeps bytes by their SHA-256."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def keep(self, stream: Readable, *, max_bytes: int | None = None) -> KeptBytes:
        """Write a stream to disk, at most ``max_bytes`` bytes of it."""
        with self.receive(stream, max_bytes=max_bytes) as received:
            return received.keep()

    @contextmanager
    def receive(self, stream: Readable, *, max_bytes: int | None = None) -> Iterator[ReceivedBytes]:
        """A stream on disk, at most ``max_bytes`` bytes of it: gone behind the block, unless it was kept meanwhile."""
        make_private_folder(self.directory)
        handle, name = tempfile.mkstemp(dir=self.directory, prefix=".incoming-")
        path = Path(name)
        try:
            digest, size = sha256(), 0
            with os.fdopen(handle, "wb") as out:
                while chunk := stream.read(_READ_AT_ONCE):
                    size += len(chunk)
                    if max_bytes is not None and size > max_bytes:
                        raise PayloadTooLarge(
                            f"the file is larger than {max_bytes:,} bytes", field="file", code="FILE_TOO_LARGE"
                        )
                    digest.update(chunk)
                    out.write(chunk)
            yield ReceivedBytes(path, self.path(digest.hexdigest()), digest.hexdigest(), size)
        finally:
            path.unlink(missing_ok=True)

    def path(self, digest: str) -> Path:
        """Where the bytes of that SHA-256 are."""
        return path_of(self.directory, digest)


def _flush(path: Path) -> None:
    """Bytes are safe only once they are on disk, and a rename once its folder is."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def plain_name(name: str) -> str:
    """The last part of a name, as text that can be stored."""
    return storable_text(name.replace("\\", "/").rpartition("/")[2]).strip()


def record_file(
    transaction: Transaction,
    kept_bytes: KeptBytes,
    *,
    file_id: UUID,
    name: str,
    owner: str | None,
    media_type: str | None,
) -> StoredFile:
    """Record a file whose bytes are kept; only the last part of its name is, and only as text."""
    plain = plain_name(name)
    FILE_NAME.require(plain)
    if owner is not None:
        OWNER.require(owner)
    if media_type:
        MEDIA_TYPE.require(media_type)
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
