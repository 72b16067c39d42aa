"""Any file: looked at once. Any table, whatever its format: opened as often as needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from penstock.ingest import delimited_text, spreadsheets
from penstock.ingest.archives import ArchiveLimits, look_at_archive
from penstock.ingest.detection import FileType, detect_type
from penstock.ingest.limits import TableLimits
from penstock.ingest.tables import Table, TableShape

if TYPE_CHECKING:  # a child process reads tables, and has no use for what reads settings
    from penstock.settings import Settings

_ARCHIVES = ArchiveLimits()


class SeenFile(NamedTuple):
    """What a file is."""

    type: FileType
    shape: TableShape | None = None
    """Of a table."""


def table_limits(settings: Settings) -> TableLimits:
    """The bounds the settings put on a table."""
    return TableLimits(
        rows=settings.ingest_max_file_rows,
        columns=settings.ingest_max_columns,
        cell_characters=settings.ingest_max_cell_characters,
        decompressed_bytes=settings.ingest_max_decompressed_bytes,
    )


def archive_limits(settings: Settings) -> ArchiveLimits:
    """The bounds the settings put on an archive."""
    return ArchiveLimits(decompressed_bytes=settings.ingest_max_decompressed_bytes)


def look_at_file(
    path: Path,
    name: str,
    tables: TableLimits,
    archives: ArchiveLimits = _ARCHIVES,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> SeenFile:
    """Find out what a file is, and refuse one that cannot be read; what the caller says of it wins over what is found.

    A table is known by its beginning, an archive by its directory, a picture by its first bytes.
    """
    file_type = detect_type(path, name)
    match file_type:
        case FileType.DELIMITED:
            return SeenFile(file_type, delimited_text.look_at(path, tables, encoding=encoding, delimiter=delimiter))
        case FileType.XLSX:
            return SeenFile(file_type, spreadsheets.look_at(path, name, tables, sheet=sheet))
        case FileType.ARCHIVE:
            look_at_archive(path, name, archives)
    return SeenFile(file_type)


def open_table(path: Path, shape: TableShape, limits: TableLimits) -> Table:
    """A table whose shape is known."""
    if shape.format == "delimited":
        return delimited_text.Delimited(path, shape, limits)
    return spreadsheets.Spreadsheet(path, shape, limits)
