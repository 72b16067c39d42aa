"""What every source of files promises, and the parts of the promise that are the same for all.

A source lists the files that are whole and lends each one for reading. Nobody tells us when a file is whole, so two
guards stand one behind the other. ``waiting`` leaves alone what looks unfinished: by its name, or because it was
changed a moment ago. ``open`` then compares the file with what was listed, before the first byte and after the last
one, and what came differently is a ``Retryable`` with the code ``SOURCE_FILE_CHANGED``: a reader that keeps nothing
until it saw the end never keeps half a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote_to_bytes

from penstock.errors import InvalidInput, NotFound, Retryable

TIMEOUT_SECONDS = 30.0
MAX_ENTRIES = 100_000
DEEPEST = 8
_UNFINISHED_ENDINGS = (".part", ".tmp", ".crdownload", ".filepart", "~")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file that waits at a source."""

    name: str
    """The last part of its address, for people."""
    address: str
    """The whole: ``folder:/inbox/x.csv``, ``s3://bucket/key``, ``ftp://host/path``."""
    size: int
    version: str
    """What changes when the content does."""


class Readable(Protocol):
    """A file that is read in pieces; an empty piece is its end."""

    def read(self, size: int = -1, /) -> bytes: ...


class Source(Protocol):
    """A place where files wait."""

    address: str

    def waiting(self) -> Iterator[Waiting]:
        """The files that are whole, oldest first; those still being written are left alone."""
        ...

    def open(self, file: Waiting) -> AbstractContextManager[Readable]:
        """Lend one file for reading, as it was when it was listed or not at all."""
        ...


class CheckedReader:
    """A reader that says at the end of the file whether it is still the one that was listed."""

    def __init__(self, file: Waiting, read: Callable[[int], bytes], check: Callable[[], None]) -> None:
        self._file = file
        self._read = read
        self._check = check
        self._read_bytes = 0
        self.has_ended = False

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes, or all that is left; nothing at the end, and then the file was whole."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        if self.has_ended or size == 0:
            return b""
        piece = self._read(size)
        self._read_bytes += len(piece)
        if self._read_bytes > self._file.size:
            raise file_changed(self._file)
        if not piece:
            self.finish()
        return piece

    def finish(self) -> None:
        """Compare what was read and what is there now with what was listed."""
        # First what the source says: a connection that broke is another failure than a file that shrank.
        self._check()
        if self._read_bytes != self._file.size:
            raise file_changed(self._file)
        self.has_ended = True

    def leave(self) -> None:
        """Compare once more when the reader stopped before the end."""
        if not self.has_ended:
            self._check()


def is_unfinished(name: str) -> bool:
    """Whether a file's name says that it is hidden or still being written."""
    return name.startswith(".") or name.lower().endswith(_UNFINISHED_ENDINGS)


def file_changed(file: Waiting) -> Retryable:
    """The file is not the one that was listed."""
    return Retryable(
        f"{file.address} changed after it was listed (then: {file.size} bytes, version {file.version}). "
        "It may still be written: list the source again later.",
        code="SOURCE_FILE_CHANGED",
    )


def file_gone(file: Waiting) -> NotFound:
    """The file was listed and is not there any more."""
    return NotFound(f"{file.address} is gone: it was listed and then moved or deleted.", code="SOURCE_FILE_GONE")


def foreign_file(file: Waiting, address: str) -> InvalidInput:
    """The file was listed by another source."""
    return InvalidInput(
        f"{file.address} is not a file of the source {address}: open it with the source that listed it.",
        field="source",
        code="SOURCE_ADDRESS_WRONG",
    )


def too_large(address: str, what: str) -> InvalidInput:
    """The source holds more than a listing may."""
    return InvalidInput(
        f"{address} has {what}: name a smaller part of it, or move away what was ingested.",
        field="source",
        code="SOURCE_TOO_LARGE",
    )


def missing_source(address: str) -> InvalidInput:
    """There is nothing at the source's address."""
    return InvalidInput(f"{address} does not exist: check the address.", field="source", code="SOURCE_MISSING")


def quote_path(path: str) -> str:
    """A path as part of an address: bytes that are not UTF-8, control characters and % are written as %XX.

    >>> quote_path("/inbox/50% off.csv")
    '/inbox/50%25 off.csv'
    """
    return "".join(
        character
        if character != "%" and character.isprintable()
        else "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))
        for character in path
    )


def unquote_path(part: str) -> str:
    """The path that ``quote_path`` wrote.

    >>> unquote_path("/inbox/50%25 off.csv")
    '/inbox/50% off.csv'
    """
    return unquote_to_bytes(part).decode("utf-8", "surrogateescape")


def display_name(name: str) -> str:
    """A file's name for people: any text column can keep it, as what is not UTF-8 is replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
