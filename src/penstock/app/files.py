"""``app.files``: what was uploaded; the bytes are on disk, by their SHA-256."""

from __future__ import annotations

from pathlib import Path

from penstock.app.runtime import Runtime
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.identifiers import Identifier, read_file_id
from penstock.operations.files import FileStore, Readable, StoredFile, get_file, record_file


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
        whose = self._caller.acts_for(owner)
        kept_bytes = self._folder().keep(stream, max_bytes=max_bytes)
        return self._runtime.store.write(
            lambda transaction: record_file(transaction, kept_bytes, name=name, owner=whose, media_type=media_type)
        )

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
