"""Any table, whatever its format: looked at once, and opened as often as needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import InvalidInput
from penstock.ingest import delimited_text, spreadsheets
from penstock.ingest.detection import FileType, detect_type
from penstock.ingest.limits import TableLimits
from penstock.ingest.tables import Table, TableShape

if TYPE_CHECKING:  # a child process reads tables, and has no use for what reads settings
    from penstock.settings import Settings


def table_limits(settings: Settings) -> TableLimits:
    """The bounds the settings put on a table."""
    return TableLimits(
        rows=settings.ingest_max_file_rows,
        columns=settings.ingest_max_columns,
        cell_characters=settings.ingest_max_cell_characters,
        decompressed_bytes=settings.ingest_max_decompressed_bytes,
    )


def look_at_table(
    path: Path,
    name: str,
    limits: TableLimits,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> TableShape:
    """Find out about a table by its beginning; what the caller says of it wins over what is found."""
    match detect_type(path, name):
        case FileType.DELIMITED:
            return delimited_text.look_at(path, limits, encoding=encoding, delimiter=delimiter)
        case FileType.XLSX:
            return spreadsheets.look_at(path, name, limits, sheet=sheet)
        case other:
            raise InvalidInput(f"{name} is no table but {other.value}", field="file", code="NOT_A_TABLE")


def open_table(path: Path, shape: TableShape, limits: TableLimits) -> Table:
    """A table whose shape is known."""
    if shape.format == "delimited":
        return delimited_text.Delimited(path, shape, limits)
    return spreadsheets.Spreadsheet(path, shape, limits)
