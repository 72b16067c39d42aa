"""What an uploaded file is: told by its first bytes, and by its name only where the bytes leave it open."""

from __future__ import annotations

import struct
import zipfile
from enum import StrEnum
from pathlib import Path, PurePath

from penstock.errors import InvalidInput

FIRST_BYTES = 4096
"""How much of a file is looked at; every signature is within the first few dozen bytes."""

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The container of .xls files, and of .xlsx files that have a password."""

_TAKEN = "Send a CSV or .xlsx table, a ZIP archive of images, or one image."

_IMAGES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*")
# The brands of an ISO media file that holds pictures; the same box in a film says mp42, isom or qt.
_PICTURE_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"avif", b"avis"})

_FOREIGN = (
    (b"%PDF-", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh91AY&SY", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\x00", "a database"),
    (b"PAR1", "a Parquet file"),
    (b"{\\rtf", "an RTF document"),
)
_MARKUP = (b"<?xml", b"<html", b"<!doctype", b"<svg")
_UNICODE_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_TABLE_ENDINGS = frozenset({".csv", ".tsv", ".tab", ".txt"})
_WORKBOOK_ENDINGS = frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"})
# What text is not made of: control characters, but for tab, line feed, form feed, carriage return and escape.
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r\x1b")


class Found(StrEnum):
    """The kinds of file that can be ingested."""

    DELIMITED = "delimited"
    XLSX = "xlsx"
    ARCHIVE = "archive"
    IMAGE = "image"


def detect_type(path: Path, name: str) -> Found:
    """Say what the file at `path` is; `name` is what its sender called it."""
    with path.open("rb") as file:
        first = file.read(FIRST_BYTES)
    ending = PurePath(name).suffix.lower()
    if not first:
        raise InvalidInput(f"The file {name!r} is empty. {_TAKEN}", field="file", code="FILE_EMPTY")
    if first.startswith(OLE):
        raise old_or_locked(name)
    if first.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return _inside_zip(path, ending)
    if is_image(first):
        return Found.IMAGE
    if what := _foreign(first):
        raise _unknown(name, what)
    if _is_text(first) or ending in _TABLE_ENDINGS:
        return Found.DELIMITED
    raise _unknown(name, "neither text nor an image")


def is_image(first: bytes) -> bool:
    """Tell whether a file that begins with these bytes is a picture.

    >>> is_image(b"GIF89a......"), is_image(b"BMW,Audi,Opel")
    (True, False)
    """
    if first.startswith(_IMAGES):
        return True
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return True
    if first[4:8] == b"ftyp":
        return _holds_pictures(first)
    # "BM" alone also begins a table of cars: ask for the reserved zeros and a known size of the second header.
    if first[:2] == b"BM" and first[6:10] == b"\0\0\0\0" and len(first) >= 18:
        return int.from_bytes(first[14:18], "little") in {12, 40, 52, 56, 64, 108, 124}
    return False


def old_or_locked(name: str) -> InvalidInput:
    """Give the refusal of an .xls file, or of one with a password: both look the same from outside."""
    return InvalidInput(
        f"The file {name!r} is an old Excel file (.xls) or has a password. "
        "Save it as .xlsx without a password, or as CSV, and send that.",
        field="file",
        code="NOT_A_TABLE",
    )


def _holds_pictures(first: bytes) -> bool:
    """Look for a picture's brand in an ISO media file: the main one, or one of those it is compatible with."""
    length = min(int.from_bytes(first[:4], "big"), len(first), 256)
    brands = [first[8:12], *(first[at : at + 4] for at in range(16, length, 4))]
    return not _PICTURE_BRANDS.isdisjoint(brands)


def _inside_zip(path: Path, ending: str) -> Found:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error):
        # The bytes say ZIP and no more: whoever reads it next finds out what is broken and says so.
        return Found.XLSX if ending in _WORKBOOK_ENDINGS else Found.ARCHIVE
    is_workbook = "[Content_Types].xml" in names and any(name.startswith("xl/") for name in names)
    return Found.XLSX if is_workbook else Found.ARCHIVE


def _foreign(first: bytes) -> str | None:
    for signature, what in _FOREIGN:
        if first.startswith(signature):
            return what
    if first[4:8] == b"ftyp":
        return "a film or a sound"
    if first[:2] == b"MZ" and b"\0" in first:
        return "a program"
    if first.removeprefix(_UNICODE_MARKS[0]).lstrip()[:16].lower().startswith(_MARKUP):
        return "HTML or XML"
    return None


def _is_text(first: bytes) -> bool:
    if first.startswith(_UNICODE_MARKS):
        return True
    if b"\0" in first:
        # UTF-16 without its mark: plain letters have a zero on one side only.
        even, odd = first[::2].count(0), first[1::2].count(0)
        if min(even, odd) or max(even, odd) < len(first) // 5:
            return False
        first = first.replace(b"\0", b"")
    return len(first.translate(None, _CONTROLS)) == len(first)


def _unknown(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"The file {name!r} is {what}. {_TAKEN}", field="file", code="FILE_TYPE_UNKNOWN")
