"""Files of strangers, read where they can do no harm: in processes with limits on time and memory.

Looks at uploads, the rows of tables, the pictures of archives and their barcodes have processes of their own each, so
that none waits for the others: an upload is looked at while a hundred bad pictures are being refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from penstock import Penstock, Permanent, Retryable
from penstock.app import Limits, ReceivedFile
from penstock.errors import InvalidInput, MemoryLimitExceeded, TimeLimitExceeded, WorkerCrashed
from penstock.ingest import ArchiveLimits, UploadOptions, archive_limits, table_limits
from penstock_apps.products.barcodes import Barcode, read_barcodes
from penstock_apps.products.looking import FilesToLookAt, FileToLookAt
from penstock_apps.products.planning import ArchiveToRead, PictureHead, picture_pieces
from penstock_apps.products.settings import ProductSettings

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")
_LOOKS = 4
_LOOKS_WAITING = 16
"""Each keeps a thread of the server; one more is told to come again."""
_PLANS = 32


class FileReader:
    """Reads files for one Penstock."""

    def __init__(self, app: Penstock, settings: ProductSettings) -> None:
        self._app = app
        self._picture_limits = Limits(timeout=settings.picture_timeout, memory_bytes=settings.picture_memory)
        self._looks = app.child_processes(_LOOKS, max_waiting=_LOOKS_WAITING)
        self._plans = app.child_processes(_PLANS)
        self._pictures = app.child_processes(os.cpu_count() or 1)

    def look(
        self,
        look: Callable[[FilesToLookAt], Answer],
        files: Sequence[ReceivedFile],
        options: UploadOptions,
        user: str | None,
    ) -> Answer:
        """What is seen in a user's files by a look at them; ``InvalidInput`` for those that cannot be used."""
        settings = self._app.settings
        request = FilesToLookAt(
            [FileToLookAt(str(file.id), file.name, file.sha256, file.path) for file in files],
            table_limits(settings),
            self.archive_limits,
            options,
        )
        try:
            return self._looks.call(
                look, request, Limits(settings.ingest_look_seconds, settings.ingest_memory_bytes), user=user
            )
        except (TimeLimitExceeded, MemoryLimitExceeded) as error:
            raise InvalidInput(_too_complex(error), field="file", code="FILE_TOO_COMPLEX") from error
        except WorkerCrashed as error:
            raise InvalidInput(
                f"what reads the file has crashed over it ({error.message}): save it again, and send that",
                field="file",
                code="FILE_CRASHES_READER",
            ) from error

    def stream(self, function: Callable[[Argument], Iterator[Answer]], argument: Argument) -> Iterator[Answer]:
        """What a function reads of a file for a plan, as it comes."""
        with _as_an_outcome("FILE_TOO_COMPLEX", "FILE_CRASHES_READER"):
            settings = self._app.settings
            limits = Limits(settings.ingest_read_seconds, settings.ingest_memory_bytes)
            yield from self._plans.stream(function, argument, limits)

    def archived_pictures(self, archive: ArchiveToRead) -> Iterator[tuple[PictureHead, ChunkReader]]:
        """The pictures of an archive, each with its bytes, to be read before the next one comes."""
        pieces = self.stream(picture_pieces, archive)
        for head in pieces:
            assert isinstance(head, PictureHead)
            yield head, ChunkReader(pieces, head.size)

    async def barcodes(self, picture: Path) -> list[Barcode]:
        """Every barcode in a picture."""
        with _as_an_outcome("IMAGE_TOO_COMPLEX", "IMAGE_CRASHES_READER"):
            return await self._pictures.call_async(read_barcodes, picture, self._picture_limits)

    @property
    def archive_limits(self) -> ArchiveLimits:
        """The bounds the settings put on an archive."""
        return archive_limits(self._app.settings)


class ChunkReader:
    """The bytes of one picture, as they come."""

    def __init__(self, pieces: Iterator[PictureHead | bytes], size: int) -> None:
        self._pieces = pieces
        self._remaining = size

    def read(self, _size: int, /) -> bytes:
        """The next chunk; nothing at the end."""
        if not self._remaining:
            return b""
        chunk = next(self._pieces)
        assert isinstance(chunk, bytes)
        self._remaining -= len(chunk)
        return chunk


@contextmanager
def _as_an_outcome(too_complex: str, crashes_reader: str) -> Iterator[None]:
    """A limit says something of the file, which no other try changes; a process that died may have been unlucky."""
    try:
        yield
    except (TimeLimitExceeded, MemoryLimitExceeded) as error:
        raise Permanent(_too_complex(error), code=too_complex) from error
    except WorkerCrashed as error:
        raise Retryable(f"what reads it has crashed over it: {error.message}", code=crashes_reader) from error


def _too_complex(error: TimeLimitExceeded | MemoryLimitExceeded) -> str:
    return f"to read it takes more than is allowed: {error.message}; send a smaller one"
