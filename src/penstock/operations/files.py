"""``app.files``: what was uploaded. The bytes are on disk by their SHA-256, a record is in the database.

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
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from uuid_utils.compat import uuid7

from penstock.errors import FileNotFound, PayloadTooLarge
from penstock.lifecycle.bounds import FILE_NAME, MEDIA_TYPE, OWNER
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.files import StoredFile, path_of
from penstock.lifecycle.identifiers import Identifier, read_file_id
from penstock.lifecycle.intake import Readable
from penstock.lifecycle.payloads import storable_text
from penstock.private_files import make_private_folder
from penstock.store.engine import Store
from penstock.store.host import Host
from penstock.store.queries import files as queries

_READ_AT_ONCE = 1 << 20
_BEING_RECORDED_SECONDS = 3600.0
"""Bytes that were written so lately may be of a file whose record is still to come."""


class Files:
    """The files that a caller sees."""

    def __init__(self, host: Host, caller: Caller) -> None:
        self._host = host
        self._caller = caller

    def keep(
        self,
        stream: Readable,
        *,
        name: str,
        owner: str | None = None,
        media_type: str | None = None,
        max_bytes: int | None = None,
    ) -> StoredFile:
        """Keep an uploaded file; hand the answer to ``submit`` as ``file``. Whose it is goes as for a job."""
        with self.receive(stream, name=name, owner=owner, media_type=media_type, max_bytes=max_bytes) as received_file:
            return received_file.keep()

    @contextmanager
    def receive(
        self,
        stream: Readable,
        *,
        name: str,
        owner: str | None = None,
        media_type: str | None = None,
        max_bytes: int | None = None,
    ) -> Iterator[ReceivedFile]:
        """The same for a file that is looked at first: behind the block nothing of it is left, unless it was kept."""
        whose = self._caller.acts_for(owner)
        digest, size = sha256(), 0
        make_private_folder(self._folder)
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".incoming-")
        path = Path(temporary)
        try:
            with os.fdopen(handle, "wb") as out:
                while chunk := stream.read(_READ_AT_ONCE):
                    size += len(chunk)
                    if max_bytes is not None and size > max_bytes:
                        raise PayloadTooLarge(
                            f"the file is larger than {max_bytes:,} bytes", field="file", code="FILE_TOO_LARGE"
                        )
                    digest.update(chunk)
                    out.write(chunk)
            new = _new_file(whose, name, media_type or None, size, digest.hexdigest())
            yield ReceivedFile(self._host.store, new, path.absolute(), path_of(self._folder, new.sha256))
        finally:
            path.unlink(missing_ok=True)

    def get(self, file_id: Identifier) -> StoredFile:
        """The record of a kept file."""
        identifier: UUID = read_file_id(file_id)
        row = self._host.store.read(
            lambda transaction: queries.file_by_id(transaction, identifier, self._caller), single_statement=True
        )
        if row is None:
            raise FileNotFound(f"there is no file {identifier}")
        return StoredFile(*row)

    def path(self, file: StoredFile | Identifier) -> Path:
        """Where the bytes of a kept file are; its record is read unless it is given."""
        stored_file = file if isinstance(file, StoredFile) else self.get(file)
        return path_of(self._folder, stored_file.sha256).absolute()

    @property
    def _folder(self) -> Path:
        return self._host.settings.files_directory


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """An uploaded file on disk that is not kept yet."""

    _store: Store
    _new: queries.NewFile
    path: Path
    """Where its bytes are, until it is kept."""
    _target: Path

    @property
    def id(self) -> UUID:
        """What its id will be."""
        return self._new.id

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self._new.name

    @property
    def sha256(self) -> str:
        """The SHA-256 of its bytes."""
        return self._new.sha256

    def keep(self) -> StoredFile:
        """Keep it for good: flush it to the disk, give it its name, and record it."""
        _flush(self.path)
        make_private_folder(self._target.parent)
        with _lock(self._target.parent.parent, fcntl.LOCK_SH):
            self.path.replace(self._target)
        _flush(self._target.parent)
        created_at = self._store.write(
            lambda transaction: queries.insert_file(transaction, self._new), single_statement=True
        )
        return StoredFile(*self._new, created_at)


def discard_bytes(folder: Path, digest: str, *, unless: Callable[[], bool]) -> bool:
    """Delete the bytes of a SHA-256, unless they are young or somebody says that they are wanted; were they?

    Who keeps a file writes the bytes first and records them then: the same bytes that were written within the last
    hour are such a file's. While this looks and deletes, no file is put in place.
    """
    path = path_of(folder, digest)
    if not folder.is_dir():
        return False
    with _lock(folder, fcntl.LOCK_EX):
        try:
            age = time.time() - path.stat().st_mtime
        except FileNotFoundError:
            return False
        if age < _BEING_RECORDED_SECONDS or unless():
            return False
        path.unlink(missing_ok=True)
    return True


@contextmanager
def _lock(folder: Path, how: int) -> Iterator[None]:
    """Let no other process put files in place while one deletes."""
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


def _flush(path: Path) -> None:
    """Bytes are safe only once they are on disk, and a rename once its folder is."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _new_file(owner: str | None, name: str, media_type: str | None, size_bytes: int, digest: str) -> queries.NewFile:
    """A record to be written; only the last part of a name is kept, and only as text."""
    plain = storable_text(name.replace("\\", "/").rpartition("/")[2]).strip()
    FILE_NAME.require(plain)
    if owner is not None:
        OWNER.require(owner)
    if media_type:
        MEDIA_TYPE.require(media_type)
    file_id: UUID = uuid7()
    return queries.NewFile(file_id, owner, plain, media_type, size_bytes, digest)
