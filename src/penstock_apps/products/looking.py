"""What files are, found out by looking at them: in a process with limits, for they come from strangers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from penstock.errors import InvalidInput
from penstock.ingest import (
    ArchiveLimits,
    FileType,
    TableLimits,
    TableShape,
    UploadOptions,
    detect_type,
    look_at_archive,
    look_at_table,
    open_table,
)
from penstock_apps.products.headers import map_headers

_TABLES = (FileType.DELIMITED, FileType.XLSX)
_ROWS_LOOKED_AT = 50
_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 60
_LOOKED_UP_BY = frozenset(("sku", "gtin", "title"))


@dataclass(frozen=True, slots=True)
class FilesToLookAt:
    """Files that were sent together, and what their sender says of them."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    table_limits: TableLimits
    archive_limits: ArchiveLimits
    options: UploadOptions


@dataclass(frozen=True, slots=True)
class FilesSeen:
    """What they are: a table, an archive, or pictures."""

    is_archive: bool = False
    shape: TableShape | None = None
    """Of a table."""
    mapping: dict[str, str | None] | None = None
    """What each column of it is taken for."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the field it is taken for, and some of what it holds."""

    name: str
    field: str | None
    examples: list[str]


@dataclass(frozen=True, slots=True)
class ColumnsSeen:
    """The columns of a table, and how it is read."""

    columns: list[Column]
    shape: TableShape


def look_at_files(files: FilesToLookAt) -> FilesSeen:
    """Find out what files are, and refuse what cannot be used; runs in a process of its own."""
    types = [detect_type(path, name) for path, name in zip(files.paths, files.names, strict=True)]
    tables = sum(file_type in _TABLES for file_type in types)
    archives = types.count(FileType.ARCHIVE)
    if len(types) > 1 and tables + archives:
        if len(types) in (tables, archives):
            what = "table" if tables else "archive"
            message, code = f"{len(types)} {what}s were sent: send one at a time, each is a job", "TOO_MANY_FILES"
        else:
            message, code = "tables, archives and pictures were sent together: send them apart", "MIXED_FILES"
        raise InvalidInput(message, field="file", code=code)
    if files.options.mapping is not None and not tables:
        raise InvalidInput(
            f"mapping says what the columns of a table are, and {files.names[0]!r} is none: leave it out",
            field="mapping",
            code="MAPPING_INVALID",
        )
    if archives:
        look_at_archive(files.paths[0], files.names[0], files.archive_limits)
        return FilesSeen(is_archive=True)
    return _look_at_table(files) if tables else FilesSeen()


def _look_at_table(files: FilesToLookAt) -> FilesSeen:
    [name] = files.names
    shape = _shape_of(files)
    mapping = map_headers(shape.headers, files.options.mapping or {})
    if not _LOOKED_UP_BY & set(mapping.values()):
        headers = ", ".join(repr(header[:40]) for header in shape.headers[:10])
        raise InvalidInput(
            f"no column of {name!r} holds article numbers, barcode numbers or titles (its first line has "
            f"{headers}): name one 'sku', 'gtin' or 'title', or say in mapping which one it is",
            field="file",
            code="NO_PRODUCT_COLUMN",
        )
    return FilesSeen(shape=shape, mapping=mapping)


def look_at_columns(files: FilesToLookAt) -> ColumnsSeen:
    """What the columns of a table are taken for, and some of what they hold; runs in a process of its own.

    A table that could not be used is looked at all the same: perhaps only a mapping is missing.
    """
    shape = _shape_of(files)
    mapping = map_headers(shape.headers, files.options.mapping or {})
    rows = [row.cells for row in islice(open_table(files.paths[0], shape, files.table_limits).rows(), _ROWS_LOOKED_AT)]
    good_rows = [cells for cells in rows if cells]
    columns = [
        Column(header, mapping[header], _examples(cells[at] for cells in good_rows))
        for at, header in enumerate(shape.headers)
    ]
    return ColumnsSeen(columns, shape)


def _shape_of(files: FilesToLookAt) -> TableShape:
    [path], [name], options = files.paths, files.names, files.options
    return look_at_table(
        path, name, files.table_limits, encoding=options.encoding, delimiter=options.delimiter, sheet=options.sheet
    )


def _examples(cells: Iterable[str]) -> list[str]:
    """The first different texts of a column."""
    texts = (" ".join(cell[:_EXAMPLE_CHARACTERS].split()) for cell in cells)
    return list(dict.fromkeys(text for text in texts if text))[:_EXAMPLES]
