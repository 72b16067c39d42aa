"""Rows as an Excel workbook, in the same memory for any number of them.

The library writes a sheet while it reads the rows, but must know all sheets of a workbook when it begins. How many
rows come is known only at the end, and more than Excel allows on a sheet are rare. So each full sheet is a workbook of
its own, and only if there are several are they put together: the frame of the result is an empty workbook with as many
sheets, made by the same library, and each sheet's file is copied into its place.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from penstock.errors import InvalidInput
from penstock.exports.cells import Value, sheet_cell, sheet_row

ROWS_OF_A_SHEET = 1_048_576
COLUMNS_OF_A_SHEET = 16_384
_LENGTH_OF_A_NAME = 31
_NOT_IN_A_NAME = re.compile(r"[\[\]:*?/\\]")
_FIRST = "xl/worksheets/sheet1.xml"
_SECOND = "xl/worksheets/sheet2.xml"


class _Column(str):
    """A header that is equal only to itself, so that two columns of one name both have a place in a dict."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def write_workbook(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Value]], *, sheet: str = "Items") -> int:
    """Write a workbook that appears at ``path`` only when it is whole; answers how many rows it has.

    Rows beyond what a sheet can have go to further sheets, each with the header. Every row has as many values as there
    are columns. NaN is an empty cell, as Excel has no such number.
    """
    if not 0 < len(columns) <= COLUMNS_OF_A_SHEET:
        message = f"A sheet has 1 to {COLUMNS_OF_A_SHEET} columns, not {len(columns)}: choose other columns, or CSV"
        raise InvalidInput(message, field="columns", code="TOO_MANY_COLUMNS" if columns else "NO_COLUMNS")
    keys = [_Column(sheet_cell(name)) for name in columns]
    counting_records = _CountingRecords(keys, rows)
    records = iter(counting_records)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        parts: list[Path] = []
        # Without any row there is still a header: the library takes it from the first record.
        record: dict[_Column, Any] | None = next(records, dict.fromkeys(keys))
        while record is not None:
            part = Path(folder) / f"{len(parts)}.xlsx"
            here = chain((record,), islice(records, ROWS_OF_A_SHEET - 2))
            _write(part, [(sheet_name(sheet), here)] if not parts else [("-", []), ("+", here)])
            parts.append(part)
            record = next(records, None)
        (parts[0] if len(parts) == 1 else _join(parts, sheet, keys)).replace(path)
    return counting_records.rows


def sheet_name(name: str, number: int = 1) -> str:
    """A name Excel accepts, with the number of a further sheet.

    >>> sheet_name("a/b"), sheet_name("a" * 40, 2)
    ('a_b', 'aaaaaaaaaaaaaaaaaaaaaaaaaaa (2)')
    """
    last = f" ({number})" if number > 1 else ""
    clean = _NOT_IN_A_NAME.sub("_", str(sheet_cell(name))).replace("\n", " ").strip(" '\t")
    return (clean or "Items")[: _LENGTH_OF_A_NAME - len(last)].rstrip(" '") + last


class _CountingRecords:
    """The rows as the library takes them, and how many there were."""

    def __init__(self, keys: list[_Column], rows: Iterable[Sequence[Value]]) -> None:
        self.rows = 0
        self._keys = keys
        self._source = rows

    def __iter__(self) -> Iterator[dict[_Column, Any]]:
        keys = self._keys
        for row in self._source:
            self.rows += 1
            yield dict(zip(keys, sheet_row(row), strict=True))


def _write(part: Path, sheets: list[tuple[str, Any]]) -> None:
    from rustpy_xlsxwriter import write_worksheets

    frozen = {"general": {"row": 1, "col": 0}}
    write_worksheets(sheets, str(part), freeze_panes=frozen, bold_headers=True, inf_value="inf")


def _join(parts: list[Path], sheet: str, keys: list[_Column]) -> Path:
    """One workbook of the sheets of several.

    A further sheet was written as the second of its workbook: the first is the one that is selected when it is
    opened, and two selected sheets would be edited together.
    """
    frame, whole = parts[0].with_name("frame.xlsx"), parts[0].with_name("whole.xlsx")
    _write(frame, [(sheet_name(sheet, number + 1), [dict.fromkeys(keys)]) for number in range(len(parts))])
    places = {f"xl/worksheets/sheet{number + 1}.xml": part for number, part in enumerate(parts)}
    with ZipFile(frame) as empty, ZipFile(whole, "w", ZIP_DEFLATED, compresslevel=1) as target:
        for entry in empty.infolist():
            if entry.filename not in places:
                target.writestr(entry, empty.read(entry), ZIP_DEFLATED)
                continue
            part = places[entry.filename]
            with (
                ZipFile(part) as book,
                book.open(_FIRST if part == parts[0] else _SECOND) as source,
                target.open(entry.filename, "w", force_zip64=True) as place,
            ):
                shutil.copyfileobj(source, place, 1024 * 1024)
    return whole
