"""A finished job's grid as CSV and as a workbook: rows a second, against a bare cursor into the bare writer.

The bare side reads the same columns of the same rows by one cursor (a server-side one where there is a server), decodes
the results, picks the same cells and writes them as they are: no guard against formulas, no stretches, no grid.
"""

from __future__ import annotations

import csv
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import psycopg
from psycopg.types.json import set_json_loads
from rustpy_xlsxwriter import write_worksheet

from benches.databases import Databases, SQLiteDatabases, plain, sqlite_path
from benches.memory import MemoryLine
from benches.one_large_job import COLUMNS, KIND, add_job
from benches.plan import Plan, in_turns, say
from benches.report import Answer, Bar, by_pairs
from penstock import Penstock
from penstock.exports.csv_text import csv_chunks
from penstock.exports.workbook import workbook_chunks
from penstock.operations.export import headers

NAME = "export"
BAR_CSV = Bar(0.5)
BAR_XLSX = Bar(1.3, at_least=False)
_AT_ONCE = 2_000
_READ = (
    "SELECT position, status, attempts, error_code, last_error, result_json, normalized_json FROM job_items "
    "WHERE job_id = {} AND role = 'item' ORDER BY position"
)
Write = Callable[[Path], None]


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    with databases.fresh() as url, tempfile.TemporaryDirectory(prefix="penstock-export-") as folder:
        job_id = add_job(databases, url, plan.items_to_export, done=True)
        app = Penstock(url)

        @app.kind(KIND)
        class Products:
            """What the job was of."""

            columns = COLUMNS

            def process(self, _item: Any) -> None:
                """Nothing: its items are done."""

        try:
            sides: dict[str, tuple[Write, Write]] = {
                "CSV": (_csv_ours(app, job_id), _csv_bare(databases, url, job_id)),
                "XLSX": (_xlsx_ours(app, job_id), _xlsx_bare(databases, url, job_id)),
            }
            return [_measured(databases, plan, form, Path(folder), *both) for form, both in sides.items()]
        finally:
            app.close()


def _measured(databases: Databases, plan: Plan, form: str, folder: Path, ours: Write, bare: Write) -> Answer:
    lines: list[MemoryLine] = []
    sizes: dict[Write, int] = {}

    def seconds(write: Write) -> float:
        target = folder / f"items.{form.lower()}"
        with MemoryLine() as memory:
            begun = time.perf_counter()
            write(target)
            taken = time.perf_counter() - begun
        if write is ours:
            lines.append(memory)
        sizes[write] = target.stat().st_size
        say(f"  {NAME} {form} on {databases.name}: {'ours' if write is ours else 'bare'} {taken:.2f} s")
        target.unlink()
        return taken

    mine, theirs = in_turns(lambda: seconds(ours), lambda: seconds(bare), plan.repetitions_of_tables)
    rows = plan.items_to_export
    peak, growth = max(one.peak for one in lines), max(one.growth() for one in lines)
    notes = [
        f"{rows:,} items, {plan.repetitions_of_tables} repetitions; {sizes[ours]:,} bytes, bare {sizes[bare]:,}",
        f"resident memory: peak {peak:.0f} MiB, growth from 20 % of the time on {growth:.1f} MiB",
    ]
    what = f"export of a job as {form}"
    if form == "XLSX":
        return by_pairs(NAME, f"{what}, time", databases.name, "s", mine, theirs, bar=BAR_XLSX, notes=notes)
    rates = ([rows / one for one in side] for side in (mine, theirs))
    return by_pairs(NAME, what, databases.name, "rows/s", *rates, bar=BAR_CSV, notes=notes)


def _csv_ours(app: Penstock, job_id: UUID) -> Write:
    def write(path: Path) -> None:
        grid = app.items.export(job_id)
        with path.open("wb") as target:
            for piece in csv_chunks(grid.headers, grid.lines):
                target.write(piece)

    return write


def _xlsx_ours(app: Penstock, job_id: UUID) -> Write:
    def write(path: Path) -> None:
        grid = app.items.export(job_id)
        with path.open("wb") as target:
            for piece in workbook_chunks(grid.headers, grid.lines, numbers=grid.number_headers):
                target.write(piece)

    return write


def _csv_bare(databases: Databases, url: str, job_id: UUID) -> Write:
    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as target, _bare_rows(databases, url, job_id) as rows:
            writer = csv.writer(target)
            writer.writerow(headers(COLUMNS))
            writer.writerows(rows)

    return write


def _xlsx_bare(databases: Databases, url: str, job_id: UUID) -> Write:
    def write(path: Path) -> None:
        names = headers(COLUMNS)
        with _bare_rows(databases, url, job_id) as rows:
            write_worksheet((dict(zip(names, row, strict=True)) for row in rows), str(path))

    return write


@contextmanager
def _bare_rows(databases: Databases, url: str, job_id: UUID) -> Iterator[Iterator[tuple[Any, ...]]]:
    if isinstance(databases, SQLiteDatabases):
        link = sqlite3.connect(sqlite_path(url))
        try:
            yield _picked(link.execute(_READ.format("?"), (job_id.hex,)), orjson.loads)
        finally:
            link.close()
        return
    with psycopg.connect(plain(url)) as server:
        set_json_loads(orjson.loads, server)
        with server.cursor("export") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(_READ.format("%s").encode(), (job_id,))
            yield _picked(cursor, None)


def _picked(read: Any, decode: Callable[[str], Any] | None) -> Iterator[tuple[Any, ...]]:
    for position, status, attempts, code, error, result, _ in read:
        shown = result if decode is None else decode(result)
        yield (position, status, *[shown.get(name) for name in COLUMNS], attempts, code, error)
