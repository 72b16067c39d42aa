"""Tables in .xlsx workbooks: looked at once, then read row by row in bounded memory.

A workbook is a ZIP of XML from a stranger. Each part is fed to expat in chunks, and:

- every unpacked byte counts, whatever the ZIP declares;
- a document type is refused, so there are no entities to expand, and so is a tag or comment without an end;
- of a cell no more is kept than it may hold, of a row no more than its columns.

Only the table of shared strings is held whole; it has bounds of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from penstock.errors import InvalidInput, PayloadTooLarge, PenstockError, Permanent
from penstock.ingest.detection import old_or_locked
from penstock.ingest.limits import TableLimits
from penstock.ingest.sheet_xml import NumberedRow
from penstock.ingest.signatures import OLE
from penstock.ingest.tables import CELL_TOO_LONG, ROW_TOO_LONG, Row, TableShape, clean_headers
from penstock.ingest.workbooks import Workbook


def look_at(path: Path, file_name: str, limits: TableLimits, *, sheet: str | None = None) -> TableShape:
    """Find the sheet to read and its headers: the first row with something in it, of the first such sheet."""
    with path.open("rb") as file:
        if file.read(len(OLE)) == OLE:
            raise old_or_locked(file_name)
        try:
            workbook = Workbook(file, limits)
            for name in workbook.sheets_to_try(sheet):
                first = next(workbook.rows(name), None)
                if first is not None:
                    return TableShape("xlsx", clean_headers(_headers(first[1], limits)), sheet=name)
        except PenstockError:
            raise
        except Exception as error:
            raise _not_a_table(f"The file {file_name!r} cannot be read as an .xlsx workbook ({error}).") from error
    raise _not_a_table("The workbook has no cells with anything in them.")


class Spreadsheet:
    """One sheet of a workbook as a table."""

    def __init__(self, path: Path, shape: TableShape, limits: TableLimits) -> None:
        self.path = path
        self.shape = shape
        self._limits = limits

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Give the rows behind the first `after` of them, in order; rows with nothing in them are none."""
        count = last_number = 0
        with self.path.open("rb") as file:
            source = self._rows(file, lambda: last_number)
            next(source, None)  # the headers
            for number, cells in source:
                count, last_number = count + 1, number
                if count > self._limits.rows:
                    raise PayloadTooLarge(
                        f"The table has more than {self._limits.rows} rows. Send it in several parts.",
                        field="file",
                        code="TOO_MANY_ROWS",
                    )
                if count > after:
                    yield self._row(number, cells)

    def _rows(self, file: IO[bytes], current_row: Callable[[], int]) -> Iterator[NumberedRow]:
        """Read the sheet, and say how far it could be read where it breaks off."""
        try:
            workbook = Workbook(file, self._limits)
            (name,) = workbook.sheets_to_try(self.shape.sheet or "")
            yield from workbook.rows(name)
        except PenstockError:
            raise
        except Exception as error:
            raise Permanent(
                f"The sheet {self.shape.sheet!r} is damaged behind row {current_row()} ({error}). "
                "Open it in a spreadsheet program, save it again and send that.",
                code="TABLE_BROKEN",
            ) from error

    def _row(self, number: int, cells: list[str]) -> Row:
        width, longest = len(self.shape.headers), self._limits.cell_characters
        if len(cells) > width:
            problem = f"Row {number} has {len(cells)} cells, the header has {width}."
            return Row(number, [], problem, ROW_TOO_LONG)
        if len("".join(cells)) > longest:
            for header, cell in zip(self.shape.headers, cells, strict=False):
                if len(cell) > longest:
                    problem = f"The cell {header!r} of row {number} is longer than {longest} characters."
                    return Row(number, [], problem, CELL_TOO_LONG)
        return Row(number, cells + [""] * (width - len(cells)))


def _headers(cells: list[str], limits: TableLimits) -> list[str]:
    if len(cells) > limits.columns:
        raise PayloadTooLarge(
            f"The table has more than {limits.columns} columns. Take out those that are not needed.",
            field="file",
            code="TOO_MANY_COLUMNS",
        )
    if max(map(len, cells)) > limits.cell_characters:
        raise _not_a_table(f"A header is longer than {limits.cell_characters} characters.")
    return cells


def _not_a_table(what: str) -> InvalidInput:
    return InvalidInput(f"{what} Save the table as .xlsx or CSV and send that.", field="file", code="NOT_A_TABLE")
