"""A page of a hundred items at the start, in the middle and at the end of very many: it should hardly differ.

Three kinds of pages: in the items' own order, of one status in the order of the last change, and what waits in a
user's jobs. The places are asked for in turns. Beside them stands what the same page costs by OFFSET, for scale.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any
from uuid import UUID

import psycopg

from benches.databases import Databases, SQLiteDatabases, plain, sqlite_path
from benches.one_large_job import KIND, OWNER, add_job
from benches.plan import Plan, say
from benches.report import Answer, Bar
from penstock import ItemStatus, Penstock
from penstock.operations.read_items import ItemCursor, ItemRow

NAME = "pages"
BAR = Bar(1.5, at_least=False)
PAGE = 100
WARM_UP = 5
_BLOCKS = 5
_OFFSET = {
    "by position": "SELECT * FROM job_items WHERE job_id = {p} ORDER BY position LIMIT 100 OFFSET {p}",
    "by change": "SELECT * FROM job_items WHERE job_id = {p} AND status = 'DONE' ORDER BY updated_at, id "
    "LIMIT 100 OFFSET {p}",
    "pending": "SELECT * FROM job_items WHERE job_id = {p} AND status = 'PENDING' ORDER BY updated_at, id "
    "LIMIT 100 OFFSET {p}",
}
Ask = Callable[[ItemCursor | None], list[ItemRow]]


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    items = plan.large_items
    with databases.fresh() as url:
        begun = time.perf_counter()
        done, waiting = (add_job(databases, url, items, done=one) for one in (True, False))
        say(f"  {NAME} on {databases.name}: twice {items:,} items made in {time.perf_counter() - begun:.0f} s")
        app = Penstock(url)
        app.kind(KIND)(_nothing)
        try:
            dialect: dict[str, tuple[UUID, Ask]] = {
                "by position": (done, lambda place: app.items.page(done, after=place, limit=PAGE)),
                "by change": (
                    done,
                    lambda place: app.items.page(done, statuses=[ItemStatus.DONE], after=place, limit=PAGE),
                ),
                "pending": (waiting, lambda place: app.items.pending(user=OWNER, after=place, limit=PAGE)),
            }
            return [_answer(databases, url, plan, way, *asked) for way, asked in dialect.items()]
        finally:
            app.close()


def _answer(databases: Databases, url: str, plan: Plan, way: str, job_id: UUID, page: Ask) -> Answer:
    items = plan.large_items
    behind = {"start": 0, "middle": items // 2, "end": items - PAGE}
    places = {name: _place(databases, url, job_id, position) for name, position in behind.items()}
    seen: dict[str, list[float]] = {name: [] for name in places}
    for number in range(WARM_UP + plan.page_asks):
        # Who goes first changes, so that none has it easier.
        for name in [*places][number % 3 :] + [*places][: number % 3]:
            begun = time.perf_counter()
            rows = page(places[name])
            seen[name].append((time.perf_counter() - begun) * 1000.0)
            first = behind[name] + 1
            assert [row.position for row in rows] == [*range(first, first + PAGE)], f"not the page at the {name}"
    kept = {name: times[WARM_UP:] for name, times in seen.items()}
    middles = {name: median(times) for name, times in kept.items()}
    parts = [{name: median(times[one::_BLOCKS]) for name, times in kept.items()} for one in range(_BLOCKS)]
    slowest, quickest = max(middles.values()), min(middles.values())
    notes = [
        "ours is the slowest place, the ceiling column the quickest; "
        + ", ".join(f"{name} {taken:.2f} ms" for name, taken in middles.items())
        + f"; median of {plan.page_asks}",
        f"by OFFSET, the page at the end: {_by_offset(databases, url, way, job_id, items - PAGE):,.1f} ms",
    ]
    what = f"a page of {PAGE} of {items:,} items, {way}"
    return Answer(
        NAME, what, databases.name, "ms", slowest, quickest, slowest / quickest,
        [max(one.values()) / min(one.values()) for one in parts], BAR, notes, {**kept},
    )  # fmt: skip


def _place(databases: Databases, url: str, job_id: UUID, position: int) -> ItemCursor | None:
    if position == 0:
        return None
    [(number, changed)] = _rows(
        databases, url, "SELECT id, updated_at FROM job_items WHERE job_id = {p} AND position = {p}", job_id, position
    )
    if isinstance(changed, int):
        changed = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=changed)
    return ItemCursor(moment=changed, item_id=number, position=position)


def _by_offset(databases: Databases, url: str, way: str, job_id: UUID, offset: int) -> float:
    """Milliseconds of one page as it is often asked for."""
    begun = time.perf_counter()
    rows = _rows(databases, url, _OFFSET[way], job_id, offset)
    taken = (time.perf_counter() - begun) * 1000.0
    assert len(rows) == PAGE
    return taken


def _rows(databases: Databases, url: str, statement: str, job_id: UUID, number: int) -> Sequence[Any]:
    if isinstance(databases, SQLiteDatabases):
        link = sqlite3.connect(sqlite_path(url))
        try:
            return list(link.execute(statement.format(p="?"), (job_id.hex, number)).fetchall())
        finally:
            link.close()
    with psycopg.connect(plain(url)) as server:
        return server.execute(statement.format(p="%s").encode(), (job_id, number)).fetchall()


def _nothing(_item: Any) -> None:
    """What its items would do."""
