"""A CSV file becomes a job's items, by a worker's plan step: rows a second, against writing the same rows bare.

Two plans are measured: one of the bench's own, which only reads the table, and the one of the products application,
which also cleans every row. Ours is timed from the moment the job is let go, with an idle worker waiting, until the job
is no longer planning; then it is cancelled, so that no item runs.

The ceiling writes the same items into the same table with the same indexes: COPY, or ``executemany``, five thousand
rows a transaction. Its JSON is made beforehand and read between the batches, and only the writing is timed.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import psycopg
from uuid_utils.compat import uuid7

from benches.ceilings_sqlite import now_microseconds
from benches.databases import Databases, SQLiteDatabases, plain, sqlite_path
from benches.memory import MemoryLine
from benches.plan import Plan, in_turns, say
from benches.report import Answer, Bar, by_pairs
from benches.workload import working
from penstock import Penstock, Planned
from penstock.ingest import TableShape, look_at_file, open_table, table_limits
from penstock.lifecycle.states import Phase
from penstock.settings import load_settings
from penstock_apps.products.application import products as products_application
from penstock_apps.products.planning import TableToRead, table_pieces
from penstock_apps.products.settings import ProductSettings

NAME = "ingest"
BAR = Bar(0.5)
BATCH = 5_000
HEADERS = ("sku", "gtin", "brand", "title", "price", "currency", "stock", "url")
MAPPING: dict[str, str | None] = {name: name for name in HEADERS if name != "stock"}
OWN, PRODUCTS = "table", "csv"
_LOOK_SECONDS = 0.02
_MOST_SECONDS = 900.0
_INSERT = """
INSERT INTO job_items (job_id, kind, role, position, status, input_json, normalized_json, updated_at)
VALUES (?, ?, 'item', ?, 'PENDING', ?, ?, ?)
"""
_COPY = b"COPY job_items (job_id, kind, role, position, status, input_json, normalized_json, updated_at) FROM STDIN"


@dataclass(frozen=True, slots=True)
class Ingested:
    """How one run of ours went."""

    rate: float
    peak: float
    growth: float


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    with tempfile.TemporaryDirectory(prefix="penstock-ingest-") as folder:
        table = Path(folder) / "products.csv"
        write_table(table, plan.rows_of_a_table)
        return [_kind(databases, plan, kind, table) for kind in (OWN, PRODUCTS)]


def _kind(databases: Databases, plan: Plan, kind: str, table: Path) -> Answer:
    rows = plan.rows_of_a_table
    made = table.with_name(f"items-of-{kind}")
    write_items(table, made, kind)
    seen: list[Ingested] = []

    def measure_ours() -> float:
        seen.append(ours(databases, kind, table, rows))
        say(f"  {NAME} {kind} on {databases.name}: {seen[-1].rate:,.0f} rows/s, {seen[-1].growth:+.1f} MiB")
        return seen[-1].rate

    mine, theirs = in_turns(measure_ours, lambda: ceiling(databases, kind, made, rows), plan.repetitions_of_tables)
    size, times = table.stat().st_size / rows, plan.repetitions_of_tables
    peak, growth = max(one.peak for one in seen), max(one.growth for one in seen)
    notes = [
        f"{rows:,} rows of {len(HEADERS)} columns and {size:.0f} bytes, {times} repetitions",
        f"resident memory of the worker: peak {peak:.0f} MiB, growth from 20 % of the time on {growth:.1f} MiB",
    ]
    what = "a table becomes items" + (", the products application" if kind == PRODUCTS else "")
    return by_pairs(NAME, what, databases.name, "rows/s", mine, theirs, bar=BAR, notes=notes)


# The table ------------------------------------------------------------------------------------------------------------


def write_table(path: Path, rows: int) -> None:
    """A table of products; every row can be used."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(HEADERS) + "\r\n")
        for number in range(1, rows + 1):
            file.write(
                f"SKU-{number:07d},{_gtin(number)},Brand {number % 500},Espresso machine {number:07d},"
                f"{number % 900 + 9}.90,EUR,{number % 91},https://shop.example/{number:07d}\r\n"
            )


def _gtin(number: int) -> str:
    digits = f"40123{number % 10**7:07d}"
    total = sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits))
    return f"{digits}{-total % 10}"


def planned(path: Path, kind: str, shape: TableShape, limits: Any, after: int = 0) -> Iterator[Planned]:
    """What the plan of a kind yields for a table."""
    if kind == PRODUCTS:
        for piece in table_pieces(TableToRead(path, shape, limits, MAPPING, after)):
            yield from map(Planned._make, piece)
        return
    table = open_table(path, shape, limits)
    headers = shape.headers
    for row in table.rows(after):
        given = dict(zip(headers, row.cells, strict=True))
        yield Planned(given, {"sku": given["sku"], "brand": given["brand"], "title": given["title"]})


def write_items(table: Path, target: Path, kind: str) -> None:
    """The JSON of every item the plan will make, a line for each: input, tab, canonical fields."""
    limits = table_limits(load_settings())
    shape = look_at_file(table, table.name, limits).shape
    assert shape is not None
    with target.open("wb") as file:
        for given, canonical in planned(table, kind, shape, limits):
            file.write(orjson.dumps(given) + b"\t" + orjson.dumps(canonical) + b"\n")


# Ours -----------------------------------------------------------------------------------------------------------------


@contextmanager
def _application(url: str, kind: str, files: Path) -> Iterator[Penstock]:
    app = Penstock(settings=load_settings(database_url=url, files_directory=files))
    if kind == PRODUCTS:
        app.install(products_application, ProductSettings())
    else:

        @app.kind(OWN)
        class Rows:
            """Each row of a table."""

            def plan(self, job: Any, after: int) -> Iterator[Planned]:
                path = app.files.path(UUID(job.params["file_id"]))
                shape = TableShape.from_json(job.params["shape"])
                return planned(path, OWN, shape, table_limits(app.settings), after)

            async def process(self, _item: Any) -> None:
                """Nothing: the job is cancelled before it comes to that."""

    app.system.migrate()
    try:
        yield app
    finally:
        app.close()


def ours(databases: Databases, kind: str, table: Path, rows: int) -> Ingested:
    """Rows a second through a worker, and the memory it took."""
    with ExitStack() as open_now:
        files = Path(open_now.enter_context(tempfile.TemporaryDirectory(prefix="penstock-files-", dir=table.parent)))
        url = open_now.enter_context(databases.fresh())
        app = open_now.enter_context(_application(url, kind, files))
        with table.open("rb") as stream:
            kept = app.files.keep(stream, name=table.name)
        shape = look_at_file(table, table.name, table_limits(app.settings)).shape
        assert shape is not None
        params: dict[str, Any] = {"file_id": str(kept.id), "sha256": kept.sha256, "name": kept.name}
        params |= {"shape": shape.to_json(), "mapping": MAPPING}
        job = app.submit(kind, params, file=kept, hold=True).job
        worker = open_now.enter_context(working(app))
        assert worker.signals.wait("idle"), "the worker did not become idle"
        with MemoryLine() as memory:
            begun = time.perf_counter()
            app.jobs.release(job.id)
            while (job := app.jobs.get(job.id)).phase in (Phase.INIT, Phase.BATCHING):
                assert job.last_error is None, f"the plan failed: {job.last_error}"
                assert time.perf_counter() - begun < _MOST_SECONDS, f"{job.progress.total} rows in {_MOST_SECONDS} s"
                time.sleep(_LOOK_SECONDS)
            taken = time.perf_counter() - begun
        app.jobs.cancel(job.id)
        total = app.jobs.get(job.id).progress.total
        assert total == rows, f"{total} of {rows} rows became items"
        return Ingested(rows / taken, memory.peak, memory.growth())


# The ceiling ----------------------------------------------------------------------------------------------------------


def ceiling(databases: Databases, kind: str, made: Path, rows: int) -> float:
    """Rows a second in plain driver code; reading what was made beforehand is not counted."""
    with databases.fresh() as url, made.open("rb") as source:
        write = _by_executemany if isinstance(databases, SQLiteDatabases) else _by_copy
        with write(url, kind) as batch:
            taken, position = 0.0, 0
            while lines := list(islice(source, BATCH)):
                taken += batch(position, lines)
                position += len(lines)
    assert position == rows, f"the ceiling wrote {position} of {rows} rows"
    return rows / taken


Write = Callable[[int, list[bytes]], float]
"""Writes lines behind a position, and answers how many seconds the database took."""


@contextmanager
def _by_executemany(url: str, kind: str) -> Iterator[Write]:
    link = sqlite3.connect(sqlite_path(url), isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "temp_store=MEMORY", "cache_size=-65536"):
        link.execute(f"PRAGMA {pragma}")
    job_id = uuid7().hex

    def write(after: int, lines: list[bytes]) -> float:
        now = now_microseconds()
        texts = (line.decode().rstrip("\n").split("\t") for line in lines)
        rows = [(job_id, kind, after + number, *both, now) for number, both in enumerate(texts, 1)]
        begun = time.perf_counter()
        link.execute("BEGIN IMMEDIATE")
        link.executemany(_INSERT, rows)
        link.execute("COMMIT")
        return time.perf_counter() - begun

    try:
        yield write
    finally:
        link.close()


@contextmanager
def _by_copy(url: str, kind: str) -> Iterator[Write]:
    job_id = uuid7()
    with psycopg.connect(plain(url), autocommit=True) as link:

        def write(after: int, lines: list[bytes]) -> float:
            front = f"{job_id}\t{kind}\titem\t".encode()
            block = b"".join(
                front + b"%d\tPENDING\t" % (after + number) + line[:-1].replace(b"\\", b"\\\\") + b"\tnow\n"
                for number, line in enumerate(lines, 1)
            )
            begun = time.perf_counter()
            with link.transaction(), link.cursor().copy(_COPY) as copy:
                copy.write(block)
            return time.perf_counter() - begun

        yield write
