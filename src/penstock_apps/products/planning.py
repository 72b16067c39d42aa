"""What a file holds, one item for each row or picture: read in a process with limits, for it comes from a stranger.

A row becomes an item whatever is wrong with it: a bad one says so when its turn comes, so that nothing is lost and the
numbers of rows stay those that people see in their own table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from penstock.ingest import ArchiveLimits, TableLimits, TableShape, open_table, pictures
from penstock_apps.products.payloads import RowInput
from penstock_apps.products.products import Product, Unusable, normalizer

_ROWS_OF_A_PIECE = 500
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TableToRead:
    """A table whose shape is known, from behind its first ``after`` rows."""

    path: Path
    shape: TableShape
    limits: TableLimits
    mapping: dict[str, str | None]
    after: int


@dataclass(frozen=True, slots=True)
class ArchiveToRead:
    """An archive of pictures, from behind the first ``after`` of them."""

    path: Path
    name: str
    limits: ArchiveLimits
    after: int


class PictureHead(NamedTuple):
    """A picture of an archive; so many bytes of it follow, unless there is a problem."""

    number: int
    name: str
    size: int
    problem: str | None
    code: str | None


def table_pieces(table: TableToRead) -> Iterator[list[tuple[RowInput, Product]]]:
    """An item for each row, some hundred at a time and as plain tuples, which travel fastest."""
    headers = table.shape.headers
    clean_row = normalizer([table.mapping.get(header) for header in headers])
    piece: list[tuple[RowInput, Product]] = []
    for number, cells, problem, code in open_table(table.path, table.shape, table.limits).rows(table.after):
        if problem is not None:
            piece.append((bad_row(number, {}, problem, code), {}))
        else:
            by_header = dict(zip(headers, cells))  # noqa: B905  # naming strict costs a third more, a million times
            try:
                piece.append(({"row": number, "cells": by_header}, clean_row(cells)))
            except Unusable as unusable:
                piece.append((bad_row(number, by_header, unusable.message, unusable.code), {}))
        if len(piece) == _ROWS_OF_A_PIECE:
            yield piece
            piece = []
    if piece:
        yield piece


def picture_pieces(archive: ArchiveToRead) -> Iterator[PictureHead | bytes]:
    """The pictures of an archive: a head, and its bytes in chunks, so that nobody else has to hold a whole one."""
    for picture, content, problem, code in pictures(archive.path, archive.name, archive.limits, archive.after):
        yield PictureHead(picture.number, picture.name, len(content or b""), problem, code)
        if content is not None:
            for start in range(0, len(content), _CHUNK_BYTES):
                yield content[start : start + _CHUNK_BYTES]


def bad_row(number: int, cells: dict[str, str], problem: str, code: str | None) -> RowInput:
    """The input of a row that cannot be used: what it holds, and what its item will say."""
    code = code or "ROW_UNREADABLE"
    return {"row": number, "cells": cells, "problem": f"row {number}: {problem}", "code": code}
