"""What files are, found out by looking at them: in a process with limits, for they come from strangers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InvalidInput
from penstock.ingest import (
    ArchiveLimits,
    FileType,
    TableLimits,
    TableShape,
    detect_type,
    look_at_archive,
    look_at_table,
)
from penstock_apps.products.headers import map_headers

_TABLES = (FileType.DELIMITED, FileType.XLSX)
_LOOKED_UP_BY = frozenset(("sku", "gtin", "title"))


@dataclass(frozen=True, slots=True)
class FilesToLookAt:
    """Files that were sent together, and what their sender says of them."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    table_limits: TableLimits
    archive_limits: ArchiveLimits
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None


@dataclass(frozen=True, slots=True)
class FilesSeen:
    """What they are: a table, an archive, or pictures."""

    is_archive: bool = False
    shape: TableShape | None = None
    """Of a table."""
    mapping: dict[str, str | None] | None = None
    """What each column of it is taken for."""


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
    if archives:
        look_at_archive(files.paths[0], files.archive_limits)
        return FilesSeen(is_archive=True)
    return _look_at_table(files) if tables else FilesSeen()


def _look_at_table(files: FilesToLookAt) -> FilesSeen:
    [path], [name] = files.paths, files.names
    shape = look_at_table(
        path, name, files.table_limits, encoding=files.encoding, delimiter=files.delimiter, sheet=files.sheet
    )
    mapping = map_headers(shape.headers)
    if not _LOOKED_UP_BY & set(mapping.values()):
        headers = ", ".join(repr(header[:40]) for header in shape.headers[:10])
        raise InvalidInput(
            f"no column of {name!r} holds article numbers, barcode numbers or titles (its first line has "
            f"{headers}): name one 'sku', 'gtin' or 'title'",
            field="file",
            code="NO_PRODUCT_COLUMN",
        )
    return FilesSeen(shape=shape, mapping=mapping)
