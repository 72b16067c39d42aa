"""Tables as CSV and as a workbook, against the bare libraries fed the same rows: rows a second, in one process.

The rows are made as they are read, like those of a server-side cursor, and are the same on both sides. What is bare
writes the values as they are: no guard against formulas, no limits, no temporary name.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rustpy_xlsxwriter import write_worksheet

from benches.plan import in_turns
from penstock.exports.cells import Value
from penstock.exports.csv_text import csv_chunks
from penstock.exports.workbook import workbook_chunks

COLUMNS = ("position", "status", "title", "brand", "barcode", "price", "stock", "address", "active", "note")
REPETITIONS = 3
BRANDS = 500


@dataclass(frozen=True, slots=True)
class Rates:
    """Rows a second of each repetition, ours and the bare library's, taken in turns."""

    ours: list[float]
    bare: list[float]


def rows_like_items(count: int) -> Iterator[tuple[Value, ...]]:
    """Ten columns of what a job's results are made of."""
    for number in range(count):
        yield (
            number, "DONE", f"Espresso machine number {number}", f"Brand {number % BRANDS}", f"40123{number:08d}",
            number * 0.37, number % 91, f"https://shop.example/item/{number}", number % 3 == 0,
            None if number % 4 else "a note of some words, with a comma",
        )  # fmt: skip


def measure_csv(rows: int, repetitions: int = REPETITIONS) -> Rates:
    """CSV to a file: ours, and ``csv.writer``."""

    def ours(file: Path) -> None:
        with file.open("wb") as target:
            for piece in csv_chunks(COLUMNS, rows_like_items(rows)):
                target.write(piece)

    def bare(file: Path) -> None:
        with file.open("w", encoding="utf-8", newline="") as target:
            writer = csv.writer(target)
            writer.writerow(COLUMNS)
            writer.writerows(rows_like_items(rows))

    return _rates(rows, repetitions, ours, bare)


def measure_xlsx(rows: int, repetitions: int = REPETITIONS) -> Rates:
    """A workbook: ours, and the library fed a generator of records."""

    def ours(file: Path) -> None:
        with file.open("wb") as target:
            for piece in workbook_chunks(COLUMNS, rows_like_items(rows)):
                target.write(piece)

    def bare(file: Path) -> None:
        write_worksheet((dict(zip(COLUMNS, row, strict=True)) for row in rows_like_items(rows)), str(file))

    return _rates(rows, repetitions, ours, bare)


def _rates(rows: int, repetitions: int, ours: Callable[[Path], None], bare: Callable[[Path], None]) -> Rates:
    with tempfile.TemporaryDirectory(prefix="penstock-tables-") as folder:

        def rate(write: Callable[[Path], None]) -> float:
            begun = time.perf_counter()
            write(Path(folder) / "table.xlsx")
            return rows / (time.perf_counter() - begun)

        return Rates(*in_turns(lambda: rate(ours), lambda: rate(bare), repetitions))
