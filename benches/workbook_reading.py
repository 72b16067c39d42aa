"""A workbook of another maker, read row by row: rows a second, against the parser with handlers that do nothing.

The ceiling is what any streaming reader in Python has to pay: the parts unpacked, expat over the sheet and over the
shared strings, and an empty function called for each beginning, each end and each text. Neither touches a database.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
import zipfile
from functools import cache
from pathlib import Path
from xml.parsers import expat

import xlsxwriter  # type: ignore[import-untyped]

from benches.databases import Databases
from benches.plan import LeftOut, Plan, in_turns, say
from benches.report import Answer, Bar, by_pairs
from penstock.ingest import TableLimits, look_at_file, open_table

NAME = "workbook"
BAR = Bar(0.3)
HEADERS = ("sku", "ean", "brand", "title", "price", "stock", "url", "active", "day", "note")
PARTS = ("xl/sharedStrings.xml", "xl/worksheets/sheet1.xml")
_CHUNK = 64 * 1024


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure once: it is no question of a database."""
    if databases.name != "sqlite":
        raise LeftOut("it is the same for every database")
    rows = plan.rows_of_a_workbook
    path = workbook(rows)
    mine, bare = in_turns(lambda: rows / ours(path, rows), lambda: rows / ceiling(path), plan.repetitions_of_tables)
    size = path.stat().st_size / 1e6
    notes = [f"{rows:,} rows of {len(HEADERS)} cells, {size:.1f} MB, written by XlsxWriter with shared strings"]
    return [by_pairs(NAME, "rows of a workbook", databases.name, "rows/s", mine, bare, bar=BAR, notes=notes)]


def ours(path: Path, rows: int) -> float:
    """Seconds for all rows as a plan gets them."""
    limits = TableLimits()
    begun = time.perf_counter()
    shape = look_at_file(path, path.name, limits).shape
    assert shape is not None
    assert sum(1 for _ in open_table(path, shape, limits).rows()) == rows
    return time.perf_counter() - begun


def ceiling(path: Path) -> float:
    """Seconds of the parser alone."""

    def begin_or_text(*_: object) -> None: ...

    begun = time.perf_counter()
    with zipfile.ZipFile(path) as archive:
        for part in PARTS:
            parser = expat.ParserCreate()
            parser.buffer_text = True
            parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = begin_or_text
            with archive.open(part) as stream:
                while chunk := stream.read(_CHUNK):
                    parser.Parse(chunk, False)
                parser.Parse(b"", True)
    return time.perf_counter() - begun


@cache
def workbook(rows: int) -> Path:
    """Products as people keep them: texts, barcodes under a format of zeros, prices, days; made once in a run."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-workbook-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, begun = folder / "products.xlsx", time.perf_counter()
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        padded = book.add_format({"num_format": "0" * 13})
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        sheet.write_row(0, 0, HEADERS)
        for row in range(1, rows + 1):
            sheet.write_string(row, 0, f"A-{row}")
            sheet.write_number(row, 1, 400_638_133_393 + row, padded)
            sheet.write_string(row, 2, f"Brand {row % 500}")
            sheet.write_string(row, 3, f"Espresso machine number {row}")
            sheet.write_number(row, 4, row * 0.37)
            sheet.write_number(row, 5, row % 91)
            sheet.write_string(row, 6, f"shop.example/item/{row}")
            sheet.write_boolean(row, 7, row % 3 == 0)
            sheet.write_number(row, 8, 45_000 + row % 700, day)
            sheet.write_string(row, 9, "a note, with a comma" if row % 4 else "x")
    say(f"  {NAME}: {rows:,} rows written in {time.perf_counter() - begun:.0f} s")
    return path
