"""What a plan yields: under its lease, with both faces of each item, in batches that suit the database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from penstock import ItemContext, ItemStatus, Job, JobContext, JobState, Penstock, Planned
from penstock.clock import ManualClock
from penstock.errors import StoreUnavailable
from penstock.lifecycle import ItemRole
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind
from penstock.operations.plan import add_planned
from penstock.store.engine import Store
from penstock.store.queries.job_items import NewItem
from penstock.store.tables import job_items
from penstock.store.transaction import Transaction
from penstock.worker import plan_writer
from tests.on_store import OnStore

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
PATIENCE = 60.0


@pytest.fixture
def make_app(store: Store, tmp_path: Path) -> Callable[..., Penstock]:
    """Makes a Penstock with some settings; latencies of a busy test machine do not count unless a test says so."""

    def make(**settings: Any) -> Penstock:
        return OnStore(store, tmp_path, **{"db_p50_ms": 1e6, "db_p95_ms": 2e6, **settings})

    return make


@pytest.fixture
def app(make_app: Callable[..., Penstock]) -> Penstock:
    return make_app()


def done(app: Penstock, job: Job) -> Job:
    assert app.drain(timeout=PATIENCE)
    return app.jobs.get(job.id)


# Both faces -----------------------------------------------------------------------------------------------------------

GIVEN: list[Any] = [
    Planned({"Titel": "Kessel"}, {"title": "Kettle"}),
    Planned({"Titel": "Topf"}),
    Planned(["a", "row"], []),
    {"title": "plain"},
    ["plain", "row"],
    "text",
    None,
]
EXPECTED: list[tuple[Any, Any]] = [
    ({"Titel": "Kessel"}, {"title": "Kettle"}),
    ({"Titel": "Topf"}, None),
    (["a", "row"], []),
    ({"title": "plain"}, None),
    (["plain", "row"], None),
    ("text", None),
    (None, None),
]


def what_came(item: ItemContext) -> list[Any]:
    """Both faces, as the handler sees them."""
    return [item.input, item.normalized]


async def what_came_on_a_loop(item: ItemContext) -> list[Any]:
    """The same, as a coroutine."""
    return what_came(item)


class InThreads:
    def plan(self, job: JobContext) -> Iterable[Any]:
        return GIVEN

    def process(self, item: ItemContext) -> list[Any]:
        return what_came(item)


class OnALoop:
    async def plan(self, job: JobContext) -> Any:
        for one in GIVEN:
            yield one

    async def process(self, item: ItemContext) -> list[Any]:
        return what_came(item)


@pytest.mark.parametrize("definition", [InThreads, OnALoop])
def test_both_reach_the_handler_the_items_and_the_grid(app: Penstock, definition: type) -> None:
    app.kind("planned")(definition)
    job = done(app, app.submit("planned").job)
    assert (job.state, job.progress.total) == (JobState.SUCCEEDED, len(GIVEN))
    items, rows = app.items.list(job.id), app.items.page(job.id)
    assert [tuple(one.result) for one in items] == EXPECTED
    assert [(one.input, one.normalized) for one in items] == EXPECTED
    assert [(row.normalized, tuple(row.result)) for row in rows] == [(one[1], one) for one in EXPECTED]
    assert [row.summary.title for row in rows] == ["Kettle", None, None, "plain", None, None, None]


def test_both_reach_a_process(app: Penstock) -> None:
    # A child must be able to import the function: this one it has already.
    app.kind("planned", runs_in="processes", concurrency=1)(attrgetter("input", "normalized"))
    job = app.submit("planned", items=GIVEN).job
    assert done(app, job).state is JobState.SUCCEEDED
    assert [tuple(one.result) for one in app.items.list(job.id)] == EXPECTED


def test_they_may_be_submitted_as_items_too(app: Penstock) -> None:
    app.kind("given")(what_came)
    app.kind("given-async")(what_came_on_a_loop)
    for kind in ("given", "given-async"):
        job = done(app, app.submit(kind, items=GIVEN).job)
        assert [tuple(one.result) for one in app.items.list(job.id)] == EXPECTED


@pytest.mark.parametrize("bad", [Planned({"n": 2}, {"title": object()}), Planned({"n": object()}, {"title": "t"})])
def test_what_is_not_json_fails_the_plan_by_name(app: Penstock, bad: Planned) -> None:
    class Bad:
        def plan(self, job: JobContext) -> Iterable[Any]:
            return [Planned({"n": 1}, {"title": "good"}), bad]

        def process(self, item: ItemContext) -> None:
            raise AssertionError("nothing of it was planned")

    app.kind("bad", retries=3)(Bad)
    job = done(app, app.submit("bad").job)
    assert (job.state, job.error_code, job.progress.total) == (JobState.FAILED, "PAYLOAD_NOT_STORABLE", 0)
    where = "items[1].normalized.title" if bad.input["n"] == 2 else "items[1].n"
    assert f"{where} cannot be kept" in (job.last_error or "")
    with pytest.raises(Exception, match="cannot be kept"):
        app.submit("bad", items=[bad])


# Batches --------------------------------------------------------------------------------------------------------------


class Batches:
    """Notes the batches a plan is written in; ``disturb`` may raise in the transaction of one, by its number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, disturb: Callable[[int], None] = lambda number: None) -> None:
        self.rows: list[int] = []
        self.weights: list[int] = []
        self._disturb = disturb
        self._lock = threading.Lock()
        monkeypatch.setattr(plan_writer, "add_planned", self._add)
        # Somebody may well have waited for a turn to write: other tests share this machine.
        monkeypatch.setattr(plan_writer, "_WAIT_THAT_COUNTS_MS", 1e9)

    def _add(
        self, transaction: Transaction, kind: Kind, claimed: ClaimedItem, items: list[NewItem], *, after: int
    ) -> int:
        answer = add_planned(transaction, kind, claimed, items, after=after)
        with self._lock:
            self.rows.append(len(items))
            self.weights.append(sum(len(given) + len(normalized or "") for given, normalized in items))
            number = len(self.rows)
        self._disturb(number)
        return answer


def rows_in_a_thread(count: int, text: str = "") -> type:
    """A kind whose plan is a plain generator."""

    class Plain:
        def plan(self, job: JobContext) -> Iterator[Any]:
            return ({"n": n, "text": text} for n in range(count))

        def process(self, item: ItemContext) -> None: ...

    return Plain


def rows_on_a_loop(count: int, text: str = "") -> type:
    """The same, as coroutines."""

    class OnLoop:
        async def plan(self, job: JobContext) -> Any:
            for n in range(count):
                yield {"n": n, "text": text}

        async def process(self, item: ItemContext) -> None: ...

    return OnLoop


Rows = Callable[..., type]
both_ways = pytest.mark.parametrize("rows", [rows_in_a_thread, rows_on_a_loop])


def away_at(*numbers: int) -> Callable[[int], None]:
    """The database is away when these transactions of a plan are about to commit."""

    def disturb(number: int) -> None:
        if number in numbers:
            raise StoreUnavailable("the database is not available: a fault point said so")

    return disturb


def planned(app: Penstock, definition: type) -> Job:
    """Plan a job of this kind and work it off."""
    app.kind("rows")(definition)
    return done(app, app.submit("rows").job)


def plan_of(app: Penstock, job: Job) -> tuple[str, int]:
    """The status and the tries of a job's plan step."""
    asked = select(job_items.c.status, job_items.c.attempts).where(
        job_items.c.job_id == job.id, job_items.c.role == ItemRole.PLAN.value
    )
    [row] = app.store.read(lambda one: one.connection.execute(asked).all())
    return row.status, row.attempts


def numbers(app: Penstock, job: Job) -> list[int]:
    """What was planned, in order of the positions."""
    found: list[int] = []
    after = 0
    while page := app.items.list(job.id, after=after):
        found += [one.input["n"] for one in page]
        after = page[-1].position
    return found


def test_batches_double_while_the_database_takes_them_well(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(monkeypatch)
    job = planned(app, rows_on_a_loop(3_000))
    assert (job.state, job.progress.total) == (JobState.SUCCEEDED, 3_000)
    assert batches.rows == [64, 128, 256, 512, 1024, 1016]
    assert numbers(app, job) == list(range(3_000))


def test_a_plan_in_a_thread_reads_ahead_so_its_batches_may_grow_one_later(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(monkeypatch)
    job = planned(app, rows_in_a_thread(3_000))
    *full, _last = batches.rows
    assert (job.state, job.progress.total, full[0]) == (JobState.SUCCEEDED, 3_000, 64)
    assert full == sorted(full)
    assert all(after <= 2 * before for before, after in pairwise(full))
    assert max(full) >= 512
    assert numbers(app, job) == list(range(3_000))


@both_ways
def test_a_batch_never_has_more_rows_than_the_setting_says(
    make_app: Callable[..., Penstock], monkeypatch: pytest.MonkeyPatch, rows: Rows
) -> None:
    batches = Batches(monkeypatch)
    job = planned(make_app(ingest_min_rows=10, ingest_max_rows=50), rows(400))
    assert (batches.rows[0], max(batches.rows), sum(batches.rows)) == (10, 50, 400)
    assert job.progress.total == 400


@both_ways
def test_heavy_rows_make_smaller_batches(
    make_app: Callable[..., Penstock], monkeypatch: pytest.MonkeyPatch, rows: Rows
) -> None:
    """Also the first of them, of whose weight nothing is known."""
    most = 100_000
    batches = Batches(monkeypatch)
    job = planned(make_app(ingest_min_rows=40, ingest_max_batch_bytes=most), rows(80, "x" * 9_000))
    assert (max(batches.rows), sum(batches.rows)) == (11, 80), "eleven weigh a little less than the most"
    assert max(batches.weights) <= most
    assert job.progress.total == 80


@both_ways
def test_a_batch_that_failed_for_want_of_the_database_is_written_again(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, rows: Rows
) -> None:
    batches = Batches(monkeypatch, disturb=away_at(3, 4))
    job = planned(app, rows(600))
    assert job.state is JobState.SUCCEEDED
    assert batches.rows[2] >= 128
    assert batches.rows[3:5] == [64, 64], "after a failure the batch is small again"
    assert sum(batches.rows) - sum(batches.rows[2:4]) == 600
    assert numbers(app, job) == list(range(600)), "something was lost or doubled"
    assert {one.status for one in app.items.list(job.id)} == {ItemStatus.DONE}


@both_ways
def test_a_plan_that_cannot_be_written_at_all_goes_on_behind_the_last_row(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, rows: Rows
) -> None:
    monkeypatch.setattr(plan_writer, "_TRIES", 2)
    batches = Batches(monkeypatch, disturb=away_at(3, 4))
    app.kind("rows", backoff="1s fixed")(rows(400))
    clock = app.store.clock
    assert isinstance(clock, ManualClock)
    with app.working() as worker:
        worker.signals.listen()
        job = app.submit("rows").job
        times = 0
        while plan_of(app, job) != ("PENDING", 1):
            times += 1
            assert worker.signals.wait("recorded", times), "the plan's first try never ended"
        there = app.jobs.get(job.id).progress.total
        assert there == sum(batches.rows[:2]) > 0
        clock.advance(2)
        job = app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
    assert (job.state, job.progress.total) == (JobState.SUCCEEDED, 400)
    assert sum(batches.rows[4:]) == 400 - there
    assert numbers(app, job) == list(range(400))


class ThreadThatWaits:
    """A plan that goes on when its first item is processed."""

    def __init__(self) -> None:
        self._is_processed = threading.Event()

    def plan(self, job: JobContext) -> Iterator[int]:
        yield 1
        assert self._is_processed.wait(PATIENCE), "the first item waits for the last one to be planned"
        yield 2

    async def process(self, item: ItemContext) -> None:
        self._is_processed.set()


class LoopThatWaits:
    """The same, as coroutines."""

    def __init__(self) -> None:
        self._is_processed = asyncio.Event()

    async def plan(self, job: JobContext) -> Any:
        yield 1
        async with asyncio.timeout(PATIENCE):
            await self._is_processed.wait()
        yield 2

    async def process(self, item: ItemContext) -> None:
        self._is_processed.set()


@pytest.mark.parametrize(
    ("definition", "concurrency"), [(ThreadThatWaits, None), (ThreadThatWaits, 1), (LoopThatWaits, 2)]
)
def test_items_are_processed_while_the_plan_goes_on(
    make_app: Callable[..., Penstock], definition: type, concurrency: int | None
) -> None:
    app = make_app(ingest_min_rows=1, ingest_max_rows=1)
    app.kind("rows", concurrency=concurrency, retries=0)(definition)
    job = done(app, app.submit("rows").job)
    assert (job.state, job.progress.done, job.progress.total) == (JobState.SUCCEEDED, 2, 2)
