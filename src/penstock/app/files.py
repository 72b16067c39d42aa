"""``app.files``: what was uploaded; the bytes are on disk, by their SHA-256."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from uuid_utils.compat import uuid7

from penstock.app.runtime import Runtime
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.identifiers import Identifier, read_file_id
from penstock.operations.files import (
    FileStore,
    Readable,
    ReceivedBytes,
    StoredFile,
    get_file,
    plain_name,
    record_file,
)


class Files:
    """The files that a caller sees."""

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self._runtime = runtime
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
        with self.receive(stream, name=name, owner=owner, media_type=media_type, max_bytes=max_bytes) as received:
            return received.keep()

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
        with self._folder().receive(stream, max_bytes=max_bytes) as received:
            yield ReceivedFile(self._runtime, received, uuid7(), plain_name(name), whose, media_type)

    def get(self, file_id: Identifier) -> StoredFile:
        """The record of a kept file."""
        identifier = read_file_id(file_id)
        return self._runtime.store.read(lambda transaction: get_file(transaction, identifier, self._caller))

    def path(self, file: StoredFile | Identifier) -> Path:
        """Where the bytes of a kept file are; its record is read unless it is given."""
        stored_file = file if isinstance(file, StoredFile) else self.get(file)
        return self._folder().path(stored_file.sha256).absolute()

    def _folder(self) -> FileStore:
        return FileStore(self._runtime.settings.files_directory)


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """An uploaded file on disk that is not kept yet."""

    _runtime: Runtime
    _bytes: ReceivedBytes
    id: UUID
    """What its id will be."""
    name: str
    owner: str | None
    media_type: str | None

    @property
    def path(self) -> Path:
        """Where its bytes are, until it is kept."""
        return self._bytes.path.absolute()

    @property
    def sha256(self) -> str:
        """The SHA-256 of its bytes."""
        return self._bytes.sha256

    def keep(self) -> StoredFile:
        """Keep it for good; hand the answer to ``submit`` as ``file``."""
        kept_bytes = self._bytes.keep()
        return self._runtime.store.write(
            lambda transaction: record_file(
                transaction,
                kept_bytes,
                file_id=self.id,
                name=self.name,
                owner=self.owner,
                media_type=self.media_type,
            )
        )
