"""``app.files``: what was uploaded. The bytes are on disk by their SHA-256, a record is in the database.

The bytes are written to a temporary name, flushed to the disk and then renamed, before the record is written: so a
record never points at bytes that are not whole. Interrupted in between, a file without a record is left, which costs
room and nothing else; the same content written again takes its place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
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
from penstock.store.host import Host
from penstock.store.queries import files as queries

_READ_AT_ONCE = 1 << 20


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
        whose = self._caller.acts_for(owner)
        digest, size = sha256(), 0
        with _temporary_file(self._folder) as (path, out):
            while chunk := stream.read(_READ_AT_ONCE):
                size += len(chunk)
                if max_bytes is not None and size > max_bytes:
                    raise PayloadTooLarge(
                        f"the file is larger than {max_bytes:,} bytes", field="file", code="FILE_TOO_LARGE"
                    )
                digest.update(chunk)
                out.write(chunk)
            _keep_for_good(path, out, path_of(self._folder, digest.hexdigest()))
        new = _new_file(whose, name, media_type or None, size, digest.hexdigest())
        created_at = self._host.store.write(
            lambda transaction: queries.insert_file(transaction, new), single_statement=True
        )
        return StoredFile(*new, created_at)

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


@contextmanager
def _temporary_file(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    make_private_folder(folder)
    handle, name = tempfile.mkstemp(dir=folder, prefix=".incoming-")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            yield path, out
    finally:
        path.unlink(missing_ok=True)


def _keep_for_good(path: Path, out: BinaryIO, target: Path) -> None:
    """Flush a temporary file to the disk and rename it. A rename is only safe once its folder is on disk too."""
    out.flush()
    os.fsync(out.fileno())
    make_private_folder(target.parent)
    path.replace(target)
    handle = os.open(target.parent, os.O_RDONLY)
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
