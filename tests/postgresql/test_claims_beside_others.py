"""A worker's claims while others of the same database keep something open: a transaction, or a snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, event, func, select

from penstock import Job, JobState, Penstock
from penstock.clock import ManualClock
from penstock.operations.claim import Claim
from penstock.operations.request import Request
from penstock.operations.submit_many import submit_many
from penstock.store.engine import Store
from penstock.store.tables import jobs
from penstock.testing.drive import MAX_BYTES, Workbench
from penstock.testing.invariants import violations
from tests.conformance.lane_claims import KIND, Hand, sent_to
from tests.conformance.steps import DONE
from tests.properties.engine_kinds import engine_kinds

SERVED = 5_000
PATIENCE = 30.0


def ended(app: Penstock, job: Job) -> JobState:
    """What a job ended as, while others go on."""
    return app.jobs.wait(job.id, timeout=PATIENCE, every=0.01).state


@pytest.fixture
def served(app: Penstock) -> Penstock:
    """A Penstock on PostgreSQL, with a kind that does nothing."""
    app.kind("mail")(lambda item: 1)
    return app


@contextmanager
def canceling(app: Penstock, job: Job) -> Iterator[Connection]:
    """A worker runs while somebody has canceled the job in a transaction that is still open."""
    engine = create_engine(app.store.engine.url)
    with engine.connect() as connection:
        app.jobs.cancel(job.id, connection=connection)
        with app.working():
            try:
                yield connection
            finally:
                connection.rollback()
    engine.dispose()
    assert violations(app.store) == []


def test_a_job_in_somebodys_open_transaction_keeps_no_other_waiting(served: Penstock) -> None:
    locked = served.submit("mail").job
    with canceling(served, locked) as connection:
        others = [served.submit("mail").job for _ in range(20)]
        assert {ended(served, one) for one in others} == {JobState.SUCCEEDED}
        assert served.jobs.get(locked.id).state is JobState.QUEUED
        connection.rollback()
        assert ended(served, locked) is JobState.SUCCEEDED


def test_a_job_that_is_canceled_after_all_is_not_served(served: Penstock) -> None:
    locked = served.submit("mail").job
    with canceling(served, locked) as connection:
        assert ended(served, served.submit("mail").job) is JobState.SUCCEEDED
        connection.commit()
        assert ended(served, locked) is JobState.CANCELED


def test_a_snapshot_that_is_kept_open_does_not_make_a_workers_claims_dearer(served: Penstock) -> None:
    """Pages that a claim touches, after thousands of jobs whose entries in the line nobody may remove."""
    claims: list[tuple[str, object]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        if "job_items SET" in statement and "SKIP LOCKED" in statement:
            claims.append((statement, parameters))

    with served.store.engine.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
        reader.execute(select(func.count()).select_from(jobs))
        [*_, last] = served.submit_many("mail", [None] * SERVED)
        with served.working() as worker:
            worker.signals.listen()
            assert served.jobs.wait(last, timeout=PATIENCE, every=0.05).finished
            event.listen(served.store.engine, "before_cursor_execute", note)
            touched: list[int] = []
            # A lane knows where the line begins a look or two after it has served the last job.
            while len(touched) < 20 and min(touched, default=SERVED) > 100:
                seen = worker.signals.count("idle")
                ended(served, served.submit("mail").job)
                assert worker.signals.wait("idle", seen + 1, timeout=PATIENCE)
                touched.append(pages_touched(served.store, *claims[-1]))
            event.remove(served.store.engine, "before_cursor_execute", note)
    assert touched[-1] < 100, f"pages of the last claims, after {SERVED} jobs: {touched}"


@pytest.fixture
def hand(postgres_store: Store) -> Hand:
    """The claims of a lane."""
    assert isinstance(postgres_store.clock, ManualClock)
    return Hand(Workbench(postgres_store, postgres_store.clock, engine_kinds()))


def test_a_held_snapshot_does_not_make_claims_dearer(hand: Hand) -> None:
    """Pages touched by a claim, an idle claim and a look, all the same after 500 and after 5,000 served jobs whose
    entries somebody's snapshot keeps.
    """
    bench, store = hand.bench, hand.bench.store

    def touched(served: int) -> list[int]:
        kind = bench.kinds.get(KIND)
        for _ in range(served // 500):
            store.write(lambda one: submit_many(one, kind, [1] * 500, Request(), max_bytes=MAX_BYTES))
            bench.record(hand.claim(500).items, DONE)
            bench.clock.advance(5)
        hand.move_on()
        with sent_to(store) as idle:
            assert hand.claim() == Claim((), None)
        bench.submit(KIND)
        with sent_to(store) as busy:
            assert hand.serve()
        [one, look_at_line], [other] = idle, busy
        return [pages_touched(store, *sent) for sent in (one, look_at_line, other)]

    with store.engine.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
        reader.execute(select(func.count()).select_from(jobs))
        few, many = touched(500), touched(4_500)
    assert all(later <= earlier + 20 for earlier, later in zip(few, many, strict=True)), (few, many)
    assert max(many) < 100, many


def pages_touched(store: Store, statement: str, parameters: Any) -> int:
    """Pages of tables and indexes that a statement reads; nothing of it is kept."""
    with store.engine.connect() as connection:
        rows = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
        found = rows.scalar_one()
        connection.rollback()
    [explained] = json.loads(found) if isinstance(found, str) else found
    return int(explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"])
