"""Somebody keeps a job in an open transaction: that job waits, and nobody else is harmed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, create_engine, func, select, text
from structlog.testing import capture_logs

from penstock import ItemContext, Job, JobContext, JobState, Penstock, Permanent, Settings
from penstock.errors import StoreLocked, StoreUnavailable
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import worker as worker_caller
from penstock.lifecycle.job import ClaimedItem
from penstock.operations import maintenance
from penstock.operations.claim import claim
from penstock.operations.heartbeat import NotExtended, extend
from penstock.operations.plan import add_planned
from penstock.operations.record import ItemResult
from penstock.runners.contract import Call
from penstock.store.tables import job_items, jobs
from penstock.testing.invariants import violations
from penstock.worker import plan_writer
from penstock.worker.lease_keeper import LeaseKeeper
from penstock.worker.recorder import Recorder
from tests.waiting import eventually

PATIENCE = 30.0
SUCCEEDED, RUNNING, FAILED, CANCELED = JobState.SUCCEEDED, JobState.RUNNING, JobState.FAILED, JobState.CANCELED


@pytest.fixture
def quick_settings(quick_settings: Settings) -> Settings:
    """Leases so short that a test can wait until they are renewed; rows are waited for a fourth of that."""
    return quick_settings.model_copy(update={"lock_floor_ms": 2_000, "lock_cap_ms": 2_000, "stop_grace_seconds": 0.1})


class Gated:
    """A handler that waits at a gate, and notes for which job it began."""

    def __init__(self, *, fails: bool = False) -> None:
        self.begun: list[UUID] = []
        self.gate = threading.Event()
        self._fails = fails

    def __call__(self, item: ItemContext) -> str:
        self.begun.append(item.job_id)
        assert self.gate.wait(PATIENCE)
        if self._fails:
            raise Permanent("it failed")
        return "done"

    def wait(self, *, begun: int) -> None:
        """Until so many have begun."""
        eventually(lambda: len(self.begun) >= begun)


@pytest.fixture
def gated(app: Penstock) -> Iterator[Callable[..., Gated]]:
    """Kinds whose handlers wait at a gate; at the end all gates are open."""
    made: list[Gated] = []

    def make(kind: str, *, fails: bool = False, **policy: Any) -> Gated:
        handler = Gated(fails=fails)
        app.kind(kind, runs_in="threads", **policy)(handler.__call__)
        made.append(handler)
        return handler

    yield make
    for one in made:
        one.gate.set()


@contextmanager
def canceling(app: Penstock, *canceled: Job) -> Iterator[Connection]:
    """Somebody has canceled these jobs in a transaction that is still open."""
    engine = create_engine(app.store.engine.url)
    with engine.connect() as connection:
        for job in canceled:
            app.jobs.cancel(job.id, connection=connection)
        yield connection
        connection.rollback()
    engine.dispose()


def ended(app: Penstock, job: Job) -> Job:
    return app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)


def wait_for_renewal(app: Penstock) -> None:
    """Until every item in a worker's hands has a lease that is longer than any is now."""
    expiry = job_items.c.lock_expires_at
    with app.store.engine.connect() as connection:
        longest: datetime = connection.execute(select(func.max(expiry))).scalar_one()

        def all_are_longer() -> bool:
            shortest: datetime = connection.execute(select(func.min(expiry))).scalar_one()
            connection.rollback()
            return shortest > longest

        eventually(all_are_longer)


def test_leases_of_others_stay_and_nothing_runs_twice(app: Penstock, gated: Callable[..., Gated]) -> None:
    locked, other = gated("a"), gated("b", retries=0)
    mine, theirs = app.submit("a", owner="ann").job, app.submit("b", owner="bob").job
    with capture_logs() as lines, app.working():
        locked.wait(begun=1)
        other.wait(begun=1)
        with canceling(app, mine):
            locked.gate.set()  # the handler ends, and its outcome cannot be written
            eventually(lambda: any(line["event"].startswith("outcomes wait") for line in lines))
            wait_for_renewal(app)
            assert (app.jobs.get(mine.id).state, app.jobs.get(theirs.id).state) == (RUNNING, RUNNING)
            other.gate.set()
            assert ended(app, theirs).state is SUCCEEDED
        assert ended(app, mine).result == "done"
    assert (locked.begun, other.begun) == ([mine.id], [theirs.id])
    assert app.jobs.get(mine.id).deaths == app.jobs.get(theirs.id).deaths == 0
    assert violations(app.store) == []


def test_outcomes_of_the_same_slice_are_written(app: Penstock, gated: Callable[..., Gated]) -> None:
    handler = gated("a", concurrency=8)
    submitted = [app.submit("a").job for _ in range(8)]
    with app.working():
        handler.wait(begun=8)
        with canceling(app, submitted[3], submitted[5]) as connection:
            handler.gate.set()
            free = [one for number, one in enumerate(submitted) if number not in (3, 5)]
            assert {ended(app, one).state for one in free} == {SUCCEEDED}
            assert ended(app, app.submit("a").job).state is SUCCEEDED
            connection.commit()
        assert {ended(app, submitted[number]).state for number in (3, 5)} == {CANCELED}
        with app.store.engine.connect() as connection:
            unwritten = select(func.count()).select_from(job_items).where(job_items.c.lease.is_not(None))
            eventually(lambda: connection.execute(unwritten).scalar_one() == 0)
    assert len(handler.begun) == 9
    assert violations(app.store) == []


def test_a_worker_stops_though_an_outcome_cannot_be_written(app: Penstock, gated: Callable[..., Gated]) -> None:
    handler = gated("a")
    job = app.submit("a").job
    working = app.worker()
    working.start()
    handler.wait(begun=1)
    with canceling(app, job):
        handler.gate.set()
        assert working.stop() is False
        assert not [one for one in threading.enumerate() if one.name == "penstock-lane-a"]
    with app.working():
        assert ended(app, job).state is SUCCEEDED
    assert handler.begun == [job.id, job.id]
    assert violations(app.store) == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_leader_ends_while_its_follower_is_locked(app: Penstock, gated: Callable[..., Gated], fails: bool) -> None:
    handler = gated("a", fails=fails)
    leader = app.submit("a", owner="ann", unique_key="k").job
    with app.working():
        handler.wait(begun=1)
        follower, other = (app.submit("a", owner=name, unique_key="k").job for name in ("bob", "cyd"))
        with canceling(app, follower):
            handler.gate.set()
            end = FAILED if fails else SUCCEEDED
            led = ended(app, leader)
            assert (led.state, ended(app, other).state) == (end, end)
            assert app.jobs.get(follower.id).state is RUNNING
        app.system.sweep()
        settled = app.jobs.get(follower.id)
    assert (settled.state, settled.result, settled.last_error) == (end, led.result, led.last_error)
    assert violations(app.store) == []


def test_a_leader_starts_while_its_follower_is_locked(app: Penstock, gated: Callable[..., Gated]) -> None:
    handler = gated("a")
    leader = app.submit("a", owner="ann", unique_key="k").job
    follower = app.submit("a", owner="bob", unique_key="k").job
    with canceling(app, follower), app.working():
        handler.wait(begun=1)
        handler.gate.set()
        assert ended(app, leader).state is SUCCEEDED
    app.system.sweep()
    assert [one.state for one in (app.jobs.get(leader.id), app.jobs.get(follower.id))] == [SUCCEEDED, SUCCEEDED]
    assert [line.to_state for line in app.jobs.history(follower.id)][-2:] == [RUNNING, SUCCEEDED]
    assert violations(app.store) == []


def test_a_plan_waits_for_its_job_and_goes_on(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    tries: list[int] = []

    def note_try(*given: Any, **named: Any) -> int:
        tries.append(1)
        return add_planned(*given, **named)

    monkeypatch.setattr(plan_writer, "add_planned", note_try)
    monkeypatch.setattr(plan_writer, "_LOCKED_SECONDS", 0.01)
    app.store.lock_seconds = 0.02
    goes_on = threading.Event()

    @app.kind("planned", runs_in="threads", retries=0)
    class Planned:
        def plan(self, job: JobContext) -> Iterator[int]:
            begun.append(job.attempt)
            yield from range(100)
            assert goes_on.wait(PATIENCE)
            job.say("half of it")  # nobody can hear that now; it is no reason to fail
            yield from range(100)

        def process(self, item: ItemContext) -> int:
            return 1

    job = app.submit("planned").job
    with app.working():
        eventually(lambda: app.jobs.get(job.id).progress.total)
        with canceling(app, job):
            before = len(tries)
            goes_on.set()
            eventually(lambda: len(tries) > before + 10)
            wait_for_renewal(app)
        done = ended(app, job)
    assert (done.state, done.progress.processed, done.deaths, begun) == (SUCCEEDED, 200, 0, [1])
    assert violations(app.store) == []


def claimed(app: Penstock, kind: str, size: int, lease_seconds: float = 60.0) -> list[ClaimedItem]:
    return list(claim(app.store, kind, "w", size=size, lease_seconds=lease_seconds).items)


def test_a_sweep_steps_over_what_is_locked_and_mends_it_later(
    app: Penstock, gated: Callable[..., Gated], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "BATCH_SIZE", 2)
    gated("a")
    many, free = app.submit("a", items=[1, 2, 3]).job, app.submit("a").job
    assert len(claimed(app, "a", 8, lease_seconds=0.001)) == 4
    with canceling(app, many):
        assert app.system.sweep().leases_expired == 1
        assert app.jobs.get(free.id).deaths == 1
    assert app.system.sweep().leases_expired == 3
    assert app.jobs.get(many.id).deaths == 2, "one for each batch in which some of it was found"
    assert violations(app.store) == []


def test_what_a_dead_neighbour_held_is_taken_back_once_it_is_free(app: Penstock, gated: Callable[..., Gated]) -> None:
    gated("a")
    job = app.submit("a").job
    claimed(app, "a", 1)
    with canceling(app, job):
        assert maintenance.rescue_from(app.store, app.kinds, "w", 5) == 0
        assert maintenance.holds_any(app.store, "w")
    assert maintenance.rescue_from(app.store, app.kinds, "w", 5) == 1
    assert not maintenance.holds_any(app.store, "w")


def test_a_heartbeat_passes_over_locked_items_and_does_not_take_them_for_lost(
    app: Penstock, gated: Callable[..., Gated]
) -> None:
    gated("a")
    app.submit("a", items=[1, 2, 3])
    held = claimed(app, "a", 3)
    first, second, third = (one.item_id for one in held)
    with app.store.engine.connect() as other:
        other.execute(select(job_items.c.id).where(job_items.c.id == first).with_for_update())
        app.store.write(lambda one: one.connection.execute(
            text("UPDATE penstock.job_items SET lease = gen_random_uuid() WHERE id = :id"), {"id": second}
        ))  # fmt: skip
        found = app.store.write(lambda one: extend(one, held, 3600.0), bounded=True)
        other.rollback()
    assert found == NotExtended(lost=frozenset({second}), row_locked=frozenset({first}))
    with app.store.engine.connect() as connection:
        longest = select(job_items.c.id).order_by(job_items.c.lock_expires_at.desc()).limit(1)
        assert connection.execute(longest).scalar_one() == third


def test_one_lanes_heartbeat_is_not_anothers(app: Penstock, gated: Callable[..., Gated]) -> None:
    class Held:
        """A lane as far as the keeper of leases knows it."""

        def __init__(self, kind: str, lease_seconds: Callable[[int], float]) -> None:
            gated(kind)
            app.submit(kind)
            self.kind = app.kinds.get(kind)
            self.controllers = type("Steering", (), {"lease_seconds": staticmethod(lease_seconds)})
            self.calls = [Call(one, Gated(), None) for one in claimed(app, kind, 1)]
            self.executor = self

        def calls_in_hand(self) -> list[Call]:
            return self.calls

    def fail(_: int) -> float:
        raise StoreUnavailable("away")

    lanes = [Held("a", fail), Held("b", lambda _: 60.0)]
    with pytest.raises(StoreUnavailable, match="away"):
        LeaseKeeper(app.store, lanes, timeout_grace=1.0).beat()  # type: ignore[arg-type]
    assert [lane.calls[0].renew_at > 0 for lane in lanes] == [False, True]


def test_a_record_that_is_too_slow_is_halved(app: Penstock, gated: Callable[..., Gated], migrated_url: str) -> None:
    """A row takes 10 ms here, so that 40 of them take longer than the server allows for a statement."""
    slow = """
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END';
        CREATE TRIGGER slow BEFORE UPDATE ON penstock.job_items FOR EACH ROW
            WHEN (NEW.status = 'DONE') EXECUTE FUNCTION slow()
    """
    gated("a")
    app.submit("a", items=list(range(40)))
    held = claimed(app, "a", 40)
    with app.store.engine.begin() as connection:
        connection.exec_driver_sql(slow)
    hasty = Penstock(f"{migrated_url}?options=-c%20statement_timeout%3D200ms")
    recorder = Recorder(hasty.store, "a", worker_caller("w"))
    done = [ItemResult(one.item_id, one.lease, one.job_id, one.role, outcomes.done("1")) for one in held]
    assert recorder.record(done) == ({one.item_id for one in held}, [])
    hasty.close()
    assert app.jobs.get(held[0].job_id).state is SUCCEEDED
    assert violations(app.store) == []


def test_a_bounded_write_gives_up_and_leaves_nothing_in_the_session(app: Penstock) -> None:
    app.kind("a")(lambda item: 1)
    job = app.submit("a").job
    name = select(jobs.c.id).where(jobs.c.id == job.id).with_for_update()
    shown = text("SELECT pg_backend_pid(), current_setting('lock_timeout')")
    with canceling(app, job), pytest.raises(StoreLocked):
        app.store.write(lambda one: one.connection.execute(name), bounded=True)
    pid, bounded = app.store.write(lambda one: one.connection.execute(shown).one(), bounded=True)
    assert bounded == "500ms"
    assert app.store.read(lambda one: one.connection.execute(shown).one(), single_statement=True) == (pid, "0")
