"""What an uploaded file is: told by its first bytes, and by its name only where the bytes leave it open."""

from __future__ import annotations

import codecs
import struct
import zipfile
from enum import StrEnum
from pathlib import Path, PurePath

from penstock.errors import InvalidInput
from penstock.ingest.signatures import OLE, ZIP, is_image, known_signature
from penstock.ingest.text import byte_order_mark
from penstock.ingest.zip_files import ZipRefused, open_zip

FIRST_BYTES = 4096
"""How much of a file is looked at; every signature is within the first few dozen bytes."""

_MOST_ENTRIES = 250_000
_ACCEPTED_FILES = "Send a CSV or .xlsx table, a ZIP archive of images, or one image."

_MARKUP = (b"<?xml", b"<html", b"<!doctype", b"<svg")
_TABLE_ENDINGS = frozenset({".csv", ".tsv", ".tab", ".txt"})
_WORKBOOK_ENDINGS = frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"})
# What text is not made of: control characters, but for tab, line feed, form feed, carriage return and escape.
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r\x1b")


class FileType(StrEnum):
    """The kinds of file that can be ingested."""

    DELIMITED = "delimited"
    XLSX = "xlsx"
    ARCHIVE = "archive"
    IMAGE = "image"


def detect_type(path: Path, name: str) -> FileType:
    """Say what the file at `path` is; `name` is what its sender called it."""
    with path.open("rb") as file:
        first = file.read(FIRST_BYTES)
    ending = PurePath(name).suffix.lower()
    if not first:
        raise InvalidInput(f"The file {name!r} is empty. {_ACCEPTED_FILES}", field="file", code="FILE_EMPTY")
    if first.startswith(OLE):
        raise old_or_locked(name)
    if first.startswith(ZIP):
        return _inside_zip(path, ending)
    if is_image(first):
        return FileType.IMAGE
    if what := _foreign(first):
        raise _unknown(name, what)
    if _is_text(first) or ending in _TABLE_ENDINGS:
        return FileType.DELIMITED
    raise _unknown(name, "neither text nor an image")


def old_or_locked(name: str) -> InvalidInput:
    """Give the refusal of an .xls file, or of one with a password: both look the same from outside."""
    return InvalidInput(
        f"The file {name!r} is an old Excel file (.xls) or has a password. "
        "Save it as .xlsx without a password, or as CSV, and send that.",
        field="file",
        code="NOT_A_TABLE",
    )


def _inside_zip(path: Path, ending: str) -> FileType:
    try:
        with path.open("rb") as file, open_zip(file, _MOST_ENTRIES) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ZipRefused, NotImplementedError, ValueError, OSError, struct.error):
        # The bytes say ZIP and no more: whoever reads it next finds out what is broken and says so.
        return FileType.XLSX if ending in _WORKBOOK_ENDINGS else FileType.ARCHIVE
    is_workbook = "[Content_Types].xml" in names and any(name.startswith("xl/") for name in names)
    return FileType.XLSX if is_workbook else FileType.ARCHIVE


def _foreign(first: bytes) -> str | None:
    if name := known_signature(first):
        return name
    if first.startswith(b"%PDF-"):
        return "a PDF document"
    if first.removeprefix(codecs.BOM_UTF8).lstrip()[:16].lower().startswith(_MARKUP):
        return "HTML or XML"
    return None


def _is_text(first: bytes) -> bool:
    if byte_order_mark(first) is not None:
        return True
    if b"\0" in first:
        # UTF-16 without its mark: plain letters have a zero on one side only.
        even, odd = first[::2].count(0), first[1::2].count(0)
        if min(even, odd) or max(even, odd) < len(first) // 5:
            return False
        first = first.replace(b"\0", b"")
    return len(first.translate(None, _CONTROLS)) == len(first)


def _unknown(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"The file {name!r} is {what}. {_ACCEPTED_FILES}", field="file", code="FILE_TYPE_UNKNOWN")
