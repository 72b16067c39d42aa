"""Rows as CSV, a piece at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from penstock.exports.cells import Value, csv_row, guarded_row, without_surrogates
from penstock.formulas import may_split

# In characters; in bytes up to four times as much.
PIECE = 96 * 1024
_BOM = "\ufeff"


def csv_chunks(columns: Sequence[str], rows: Iterable[Sequence[Value]], *, bom: bool = True) -> Iterator[bytes]:
    r"""The header and the rows as UTF-8 with ``\r\n``, in pieces of about 100 kB, read as they are asked for.

    The byte order mark in front is what tells Excel that this is UTF-8; leave it out for a program that does not
    expect it. NUL is left out and half a character is replaced by a mark, as no reader takes them.
    """
    piece = _Piece(bom=bom)
    piece.add(columns)
    for row in rows:
        if piece.add(row) >= PIECE:
            yield piece.encode()
            piece = _Piece(bom=False)
    if piece.rows:
        yield piece.encode()


class _Piece:
    """Some rows of a table as text."""

    def __init__(self, *, bom: bool) -> None:
        self.rows: list[Sequence[Value]] = []
        self._mark = _BOM if bom else ""
        self._size = 0
        self._buffer = io.StringIO(newline="")
        # It answers what the buffer's write does: how many characters there were.
        self._write = csv.writer(self._buffer, lineterminator="\r\n").writerow

    def add(self, row: Sequence[Value]) -> int:
        """One more row; the answer is how many characters there are."""
        self.rows.append(row)
        self._size += self._write(csv_row(row))
        return self._size

    def encode(self) -> bytes:
        """The rows as UTF-8; written again, cell by cell, if a spreadsheet might find a formula in them."""
        text = self._buffer.getvalue()
        if may_split(text):
            buffer = io.StringIO(newline="")
            csv.writer(buffer, lineterminator="\r\n").writerows(map(guarded_row, self.rows))
            text = buffer.getvalue()
        return _encode(self._mark + text)


def _encode(text: str) -> bytes:
    """Whole pieces are cleaned, which costs next to nothing; a sign behind a NUL was already looked at."""
    if "\0" in text:
        text = text.replace("\0", "")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text).encode()
