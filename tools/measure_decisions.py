"""The small measurements that docs/decisions cites: ``python -m tools.measure_decisions claim rows …``.

They compare two ways of doing one thing, side by side on one machine. How fast the engine is as a whole is asked in
``benches``.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import bindparam, text, update

from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.operations.claim import claim
from penstock.operations.request import Request
from penstock.operations.submit import submit
from penstock.runners.processes import Limits, ProcessPool
from penstock.store.engine import Store, open_store
from penstock.store.queries.record import finish_items
from penstock.store.schema import migrate
from penstock.store.tables import job_items
from penstock.store.transaction import Transaction
from penstock.testing.postgres import private_postgres

SIZES = (1_000, 100_000, 400_000)
ROUNDS = 9
MOST = 1_000_000


class Calls:
    """Some items and a finalize step, so that the job is not over before we say so."""

    def process(self, item: object) -> None:
        """Do nothing."""

    def finalize(self, job: object) -> None:
        """Do nothing."""


KIND = Kind.of("measured", Calls, Policy())
SINGLE = Kind.of("single", lambda item: None, Policy())


@contextmanager
def fresh_stores() -> Iterator[Callable[[str], list[Store]]]:
    """A function from a name to an empty SQLite file and an empty PostgreSQL database."""
    with tempfile.TemporaryDirectory() as folder, private_postgres() as server:

        def open_both(name: str) -> list[Store]:
            server.create_database(name)
            stores = [open_store(f"sqlite:///{Path(folder) / name}.db"), open_store(server.url(name))]
            for store in stores:
                migrate(store)
            return stores

        yield open_both


def take(store: Store, size: int) -> Sequence[ClaimedItem]:
    """Claim so many items."""
    return claim(store, KIND.name, "measurer", size=size, lease_seconds=600).items


def fill(store: Store, items: int) -> float:
    """Submit one job of so many items; the answer is how long it took."""
    return timed(
        lambda: store.write(lambda one: submit(one, KIND, None, Request(), items=range(items), max_bytes=MOST))
    )


def timed(action: Callable[[], object]) -> float:
    """How many milliseconds it takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000.0


def told(samples: Sequence[float]) -> str:
    """The median, and between what it lies."""
    return f"{statistics.median(samples):8.2f} ms ({min(samples):.2f} to {max(samples):.2f}, n={len(samples)})"


def measure_claim() -> None:
    """A claim of 40 items, by how many the job has; on PostgreSQL before and after ANALYZE."""
    with fresh_stores() as stores:
        for size in SIZES:
            for store in stores(f"claim{size}"):
                with closing(store):
                    fill(store, size)
                    take(store, 100)
                    print(f"{store.dialect.name:11} {size:9,} items  {told(_claims(store))}")
                    if store.dialect.name == "postgresql":
                        _analyze(store)
                        take(store, 100)
                        print(f"{store.dialect.name:11} {size:9,} items  {told(_claims(store))} after ANALYZE")


def _claims(store: Store) -> list[float]:
    return [timed(lambda: take(store, 40)) for _ in range(ROUNDS)]


def _analyze(store: Store) -> None:
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


def measure_rows() -> None:
    """1,000 outcomes in one statement over rows handed in together, and by executemany."""
    one_by_one = (
        update(job_items)
        .where(job_items.c.id == bindparam("the_id"), job_items.c.lease == bindparam("the_lease"))
        .values(status="DONE", lease=None, result_json=bindparam("the_result"))
    )

    def together(one: Transaction, held: Sequence[ClaimedItem]) -> None:
        finish_items(one, held[0].lease, [(item.item_id, "1") for item in held])

    def singly(one: Transaction, held: Sequence[ClaimedItem]) -> None:
        rows = [{"the_id": each.item_id, "the_lease": each.lease, "the_result": 1} for each in held]
        one.connection.execute(one_by_one, rows)

    with fresh_stores() as stores:
        for store in stores("rows"):
            with closing(store):
                fill(store, 2 * ROUNDS * 1000)
                _analyze(store)
                samples: dict[str, list[float]] = {"together": [], "executemany": []}
                for _ in range(ROUNDS):
                    for name, way in (("together", together), ("executemany", singly)):
                        held = take(store, 1000)
                        samples[name].append(timed(partial(store.write, partial(way, held=held))))
                for name, each in samples.items():
                    print(f"{store.dialect.name:11} {name:12} {told(each)}")


def measure_foreign_key() -> None:
    """50,000 items written without and with a foreign key to their job, on PostgreSQL."""
    with fresh_stores() as stores:
        for store in stores("keys"):
            with closing(store):
                if store.dialect.name != "postgresql":
                    continue
                samples: dict[str, list[float]] = {"without": [], "with": []}
                for _ in range(3):
                    samples["without"].append(fill(store, 50_000))
                    _alter(store, "ADD CONSTRAINT measured FOREIGN KEY (job_id) REFERENCES penstock.jobs (id)")
                    samples["with"].append(fill(store, 50_000))
                    _alter(store, "DROP CONSTRAINT measured")
                for name, each in samples.items():
                    print(f"{name:8} a foreign key {told(each)}")


def _alter(store: Store, change: str) -> None:
    with store.engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE penstock.job_items {change}"))


def measure_synchronous() -> None:
    """200 submissions to a SQLite file, one commit each, by how sure the disk must be."""
    with tempfile.TemporaryDirectory() as folder:
        for setting in ("NORMAL", "FULL"):
            with closing(open_store(f"sqlite:///{folder}/{setting}.db", sqlite_synchronous=setting)) as store:
                migrate(store)
                samples = [timed(partial(_submit_single, store)) for _ in range(200)]
                print(f"synchronous={setting:7} {told(samples)} a submission")


def _submit_single(store: Store) -> None:
    store.write(lambda one: submit(one, SINGLE, {"n": 1}, Request(), items=None, max_bytes=MOST))


def measure_building() -> None:
    """Building a statement, and finding it built."""
    from penstock.store.dialects.dialect import dialect_of
    from penstock.store.queries import served_jobs as queries

    dialect = dialect_of("sqlite")
    build: Any = queries._start_served
    build(dialect)
    print(f"built     {told([timed(lambda: build.__wrapped__(dialect)) for _ in range(100)])}")
    print(f"found     {told([timed(lambda: build(dialect)) for _ in range(100)])}")


def _call(pool: ProcessPool) -> None:
    pool.submit(abs, -1, Limits(None, None)).result()


def measure_child() -> None:
    """The first call in a fresh child process, and the next one in the same."""
    first, following = [], []
    for _ in range(ROUNDS):
        pool = ProcessPool(1)
        first.append(timed(partial(_call, pool)))
        following.append(timed(partial(_call, pool)))
        pool.close(0)
    print(f"first call {told(first)}\nnext call  {told(following)}")


def measure_docx() -> None:
    """A DOCX of 5,000 paragraphs with one inside a content control, read by python-docx and by us."""
    import docx
    from docx.oxml import parse_xml

    from penstock_apps.documents.reading.bounds import Bounds
    from penstock_apps.documents.reading.docx import read_docx

    made = docx.Document()
    for number in range(5_000):
        made.add_paragraph(f"paragraph {number} with some words in it")
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    control = "<w:sdtContent><w:p><w:r><w:t>in a content control</w:t></w:r></w:p></w:sdtContent>"
    made.element.body.insert(0, parse_xml(f'<w:sdt xmlns:w="{namespace}">{control}</w:sdt>'))
    kept = io.BytesIO()
    made.save(kept)

    def theirs() -> str:
        return "\n".join(one.text for one in docx.Document(io.BytesIO(kept.getvalue())).paragraphs)

    def ours() -> str:
        return read_docx(kept.getvalue(), Bounds()).text

    for name, read in (("python-docx", theirs), ("ours", ours)):
        found = "in a content control" in read()
        print(f"{name:12} {told([timed(read) for _ in range(3)])} content control: {'read' if found else 'left out'}")


MEASUREMENTS: dict[str, Callable[[], None]] = {
    "building": measure_building,
    "child": measure_child,
    "claim": measure_claim,
    "docx": measure_docx,
    "foreign-key": measure_foreign_key,
    "rows": measure_rows,
    "synchronous": measure_synchronous,
}


def main(names: Sequence[str]) -> int:
    """Run the named measurements, or all; the answer is the exit code."""
    if unknown := [name for name in names if name not in MEASUREMENTS]:
        print(f"measure_decisions: {unknown[0]!r} is not one of {', '.join(MEASUREMENTS)}", file=sys.stderr)
        return 2
    for name in names or MEASUREMENTS:
        print(f"== {name}: {(MEASUREMENTS[name].__doc__ or '').strip()}", flush=True)
        MEASUREMENTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
