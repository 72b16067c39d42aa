"""Files of strangers, read where they can do no harm: in processes with limits on time and memory.

Looks at uploads, the rows of tables, the pictures of archives and their barcodes have processes of their own each, so
that none waits for the others: an upload is looked at while a hundred bad pictures are being refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from penstock import Penstock, Permanent, Planned, Retryable
from penstock.app import Limits
from penstock.errors import InvalidInput, MemoryLimitExceeded, TimeLimitExceeded, WorkerCrashed
from penstock_apps.products.barcodes import Barcode, read_barcodes
from penstock_apps.products.looking import (
    ColumnsSeen,
    FilesSeen,
    FilesToLookAt,
    look_at_columns,
    look_at_files,
)
from penstock_apps.products.planning import ArchiveToRead, PictureHead, TableToRead, picture_pieces, table_pieces
from penstock_apps.products.settings import ProductSettings

_LOOKS = 4
_LOOKS_WAITING = 16
"""Each keeps a thread of the server; one more is told to come again."""
_PLANS = 32
Seen = TypeVar("Seen")


class FileReader:
    """Reads files for one Penstock."""

    def __init__(self, app: Penstock, settings: ProductSettings) -> None:
        self._app = app
        self._picture_limits = Limits(timeout=settings.picture_timeout, memory_bytes=settings.picture_memory)
        self._looks = app.child_processes(_LOOKS, max_waiting=_LOOKS_WAITING)
        self._plans = app.child_processes(_PLANS)
        self._pictures = app.child_processes(os.cpu_count() or 1)

    def look(self, files: FilesToLookAt, user: str | None) -> FilesSeen:
        """What files of a user are; ``InvalidInput`` for those that cannot be used."""
        return self._look(look_at_files, files, user)

    def look_at_columns(self, files: FilesToLookAt, user: str | None) -> ColumnsSeen:
        """The columns of a user's table; ``InvalidInput`` where there is none."""
        return self._look(look_at_columns, files, user)

    def _look(self, look: Callable[[FilesToLookAt], Seen], files: FilesToLookAt, user: str | None) -> Seen:
        limits = Limits(self._app.settings.ingest_look_seconds, self._app.settings.ingest_memory_bytes)
        try:
            return self._looks.call(look, files, limits, user=user)
        except (TimeLimitExceeded, MemoryLimitExceeded) as error:
            raise InvalidInput(_too_complex(error), field="file", code="FILE_TOO_COMPLEX") from error
        except WorkerCrashed as error:
            raise InvalidInput(
                f"what reads the file has crashed over it ({error.message}): save it again, and send that",
                field="file",
                code="FILE_CRASHES_READER",
            ) from error

    def rows(self, table: TableToRead) -> Iterator[Planned]:
        """An item for each row of a table."""
        make = tuple.__new__
        with _as_an_outcome("FILE_TOO_COMPLEX", "FILE_CRASHES_READER"):
            for piece in self._plans.stream(table_pieces, table, self._plan_limits):
                for planned in piece:
                    yield make(Planned, planned)

    def archived_pictures(self, archive: ArchiveToRead) -> Iterator[tuple[PictureHead, ChunkReader]]:
        """The pictures of an archive, each with its bytes, to be read before the next one comes."""
        with _as_an_outcome("FILE_TOO_COMPLEX", "FILE_CRASHES_READER"):
            pieces = self._plans.stream(picture_pieces, archive, self._plan_limits)
            for head in pieces:
                assert isinstance(head, PictureHead)
                yield head, ChunkReader(pieces, head.size)

    async def barcodes(self, picture: Path) -> list[Barcode]:
        """Every barcode in a picture."""
        with _as_an_outcome("IMAGE_TOO_COMPLEX", "IMAGE_CRASHES_READER"):
            return await self._pictures.call_async(read_barcodes, picture, self._picture_limits)

    @property
    def _plan_limits(self) -> Limits:
        return Limits(self._app.settings.ingest_read_seconds, self._app.settings.ingest_memory_bytes)


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
