"""Rows as CSV, a piece at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from penstock.exports.cells import Value, csv_row, without_surrogates

# In characters; in bytes up to four times as much.
PIECE = 96 * 1024
_BOM = "\ufeff"


def csv_chunks(columns: Sequence[str], rows: Iterable[Sequence[Value]], *, bom: bool = True) -> Iterator[bytes]:
    r"""The header and the rows as UTF-8 with ``\r\n``, in pieces of about 100 kB, read as they are asked for.

    The byte order mark in front is what tells Excel that this is UTF-8; leave it out for a program that does not
    expect it. NUL is left out and half a character is replaced by a mark, as no reader takes them.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    if bom:
        buffer.write(_BOM)
    # writerow answers what the buffer's write does: how many characters there were.
    size = writer.writerow(csv_row(columns))
    write = writer.writerow
    for row in rows:
        size += write(csv_row(row))
        if size >= PIECE:
            yield _encode(buffer.getvalue())
            buffer.seek(0)
            buffer.truncate()
            size = 0
    if size:
        yield _encode(buffer.getvalue())


def _encode(text: str) -> bytes:
    """Whole pieces are cleaned, which costs next to nothing; a sign behind a NUL was already looked at."""
    if "\0" in text:
        text = text.replace("\0", "")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text).encode()
