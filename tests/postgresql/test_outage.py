"""PostgreSQL goes away and comes back: work goes on soon, whoever notices first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy.engine import make_url
from structlog.testing import capture_logs

from penstock import ItemContext, JobState, Penstock, load_settings
from penstock.errors import StoreUnavailable
from penstock.lifecycle.states import FINISHED
from penstock.store import notifier
from penstock.store.dialects.postgresql import listener as postgresql_listener
from penstock.store.notices import stopped_jobs
from penstock.testing.invariants import violations
from penstock.testing.postgres import PostgresServer, PostgresUnavailable, private_postgres
from penstock.worker import setbacks
from penstock.worker.worker import Worker
from tests.conftest import TEST_SERVER, unavailable
from tests.postgresql.fault_proxy import FaultProxy, fault_proxy
from tests.waiting import eventually

PATIENCE = 30.0
NEVER = 3600.0


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[FaultProxy]:
    with fault_proxy(postgres_server.port) as one:
        yield one


@pytest.fixture
def open_app(migrated_postgres_url: str, proxy: FaultProxy) -> Iterator[Callable[..., Penstock]]:
    """Makes Penstocks: through the proxy, or past it."""
    opened: list[Penstock] = []

    def make(*, direct: bool = False, **settings: Any) -> Penstock:
        url = make_url(migrated_postgres_url)
        through = url if direct else url.set(port=proxy.port)
        app = Penstock(
            settings=load_settings(
                **{"database_url": through.render_as_string(hide_password=False), "poll_seconds": NEVER} | settings
            )
        )
        app.kind("double")(lambda item: item.input * 2)
        opened.append(app)
        return app

    yield make
    proxy.resume()
    for app in opened:
        app.close()


def lose_the_database(worker: Worker, proxy: FaultProxy, failures: int) -> None:
    """Take it away until its only lane has failed so often."""
    proxy.refuse()
    for one in worker._lanes:
        one.completions.wake()
    assert worker.signals.wait("failed", times=failures, timeout=PATIENCE)


def failed_so_often(logs: list[Any], times: int) -> bool:
    """Has the listener failed so often?"""
    return len([one for one in logs if one["event"].startswith("cannot listen")]) >= times


def test_a_lane_waits_a_second_at_most_for_a_database_that_is_away(
    open_app: Callable[..., Penstock], proxy: FaultProxy
) -> None:
    app = open_app()
    with capture_logs() as logs, app.working() as worker:
        assert worker.listening.wait(PATIENCE)
        worker.signals.listen()
        lose_the_database(worker, proxy, failures=7)  # the seventh wait would have been of six seconds and more
        proxy.resume()
        job = open_app(direct=True).submit("double", 4).job
        assert app.jobs.wait(job.id, timeout=PATIENCE, every=0.01).result == 8
    waits = [one["wait"] for one in logs if one["event"].startswith("the lane's work failed")]
    deaf = [one["wait"] for one in logs if one["event"].startswith("cannot listen for new work")]
    assert len(waits) >= 7
    assert deaf
    assert max(waits + deaf) <= 1.0


def test_who_reaches_the_database_first_wakes_the_others(
    open_app: Callable[..., Penstock], proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app()
    waiting = open_app(direct=True)
    with app.working() as worker:
        assert worker.listening.wait(PATIENCE)
        worker.signals.listen()
        # From here on nobody looks by himself: a lane and a listener that go on have been woken.
        monkeypatch.setattr(setbacks, "_LONGEST_WAIT_FOR_STORE", NEVER)
        monkeypatch.setattr(notifier, "_LONGEST_WAIT", NEVER)
        for module in (setbacks, notifier):
            monkeypatch.setattr(module, "_FIRST_WAIT", NEVER)
        lose_the_database(worker, proxy, failures=1)
        eventually(lambda: not worker.listening.is_set())
        job = waiting.submit("double", 4).job
        proxy.resume()
        app.jobs.get(job.id)  # a read, by somebody else in this process
        assert waiting.jobs.wait(job.id, timeout=PATIENCE, every=0.01).result == 8
        assert worker.listening.wait(PATIENCE)


def test_outcomes_that_waited_for_the_database_land(open_app: Callable[..., Penstock], proxy: FaultProxy) -> None:
    app = open_app(lock_floor_ms=60_000)
    begun, go_on = threading.Event(), threading.Event()

    @app.kind("held")
    def held(item: ItemContext) -> int:
        begun.set()
        go_on.wait(PATIENCE)
        return item.attempt

    with app.working(kinds=["held"]) as worker:
        assert worker.listening.wait(PATIENCE)
        worker.signals.listen()
        job = app.submit("held").job
        assert begun.wait(PATIENCE)
        proxy.refuse()
        go_on.set()
        assert worker.signals.wait("failed", times=3, timeout=PATIENCE)
        with pytest.raises(StoreUnavailable):
            app.jobs.get(job.id)
        proxy.resume()
        eventually(lambda: open_app(direct=True).jobs.get(job.id).finished)
    assert app.jobs.get(job.id).result == 1


# The listener ---------------------------------------------------------------------------------------------------------


def test_a_foreign_notice_does_not_deafen_a_worker(open_app: Callable[..., Penstock]) -> None:
    app, elsewhere = open_app(), open_app(direct=True)
    with capture_logs() as logs, app.working() as worker:
        assert worker.listening.wait(PATIENCE)
        with elsewhere.store.engine.begin() as connection:
            for payload in ("!hello", "!", "?", "no such kind", "\U0001f407" * 100):
                connection.exec_driver_sql("SELECT pg_notify('penstock', %s)", (payload,))
        job = elsewhere.submit("double", 4).job
        assert elsewhere.jobs.wait(job.id, timeout=PATIENCE, every=0.01).result == 8
        assert worker.listening.is_set()
    assert [one for one in logs if one["event"].startswith("cannot listen")] == []
    assert stopped_jobs(["!hello", "!"]) == frozenset()


def test_a_mistake_in_what_is_woken_does_not_end_the_listening(
    open_app: Callable[..., Penstock], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, elsewhere = open_app(), open_app(direct=True)
    worker = app.worker()
    real, mistakes = worker._wakeups._on_notices, iter([ValueError("a mistake of ours")])

    def mistaken(notices: frozenset[str] | None) -> None:
        if notices and (mistake := next(mistakes, None)) is not None:
            raise mistake
        real(notices)

    monkeypatch.setattr(worker._wakeups, "_on_notices", mistaken)
    worker.start()
    try:
        assert worker.listening.wait(PATIENCE)
        first = elsewhere.submit("double", 4).job  # this notice is lost, and found by the look after it
        assert elsewhere.jobs.wait(first.id, timeout=PATIENCE, every=0.01).result == 8
        assert worker.listening.wait(PATIENCE)
    finally:
        worker.stop()


def test_each_lost_connection_is_made_again_as_soon_as_the_first(
    open_app: Callable[..., Penstock], proxy: FaultProxy
) -> None:
    app = open_app()
    with capture_logs() as logs, app.working() as worker:
        for lost in range(1, 5):
            assert worker.listening.wait(PATIENCE)
            proxy.cut()
            eventually(partial(failed_so_often, logs, lost))
        assert worker.listening.wait(PATIENCE)
    # A connection may fail twice in a row; what was healthy in between does not count any more.
    counted = [one["failures"] for one in logs if one["event"].startswith("cannot listen")]
    assert counted.count(1) == 4


def test_a_listener_whose_connection_is_silently_dead_notices_it(
    open_app: Callable[..., Penstock], proxy: FaultProxy, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_listener, "_PROVE_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(postgresql_listener, "_PROVE_WITHIN_SECONDS", 0.1)
    monkeypatch.setattr(postgresql_listener, "_LOOK_SECONDS", 0.05)
    through = make_url(migrated_postgres_url).set(port=proxy.port).render_as_string(hide_password=False)
    app = open_app(direct=True, listen_url=through)
    with capture_logs() as logs, app.working() as worker:
        assert worker.listening.wait(PATIENCE)
        proxy.swallow()  # what is written goes past the proxy, and is not heard
        eventually(lambda: any("is dead" in one.get("error", "") for one in logs))
        proxy.resume()
        assert worker.listening.wait(PATIENCE)


def test_a_listener_on_another_database_says_so(
    open_app: Callable[..., Penstock], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_listener, "_PROVE_WITHIN_SECONDS", 0.2)
    monkeypatch.setattr(postgresql_listener, "_LOOK_SECONDS", 0.05)
    app = open_app(direct=True, listen_url=postgres_url)
    with capture_logs() as logs, app.working() as worker:
        eventually(lambda: any("PENSTOCK_LISTEN_URL" in one.get("reason", "") for one in logs))
        assert not worker.listening.is_set()
        assert worker._poll_seconds() == notifier.DEAF_POLL_SECONDS


def test_an_address_beyond_the_reach_of_select_is_heard(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/penstock.db"
    app, elsewhere = (Penstock(settings=load_settings(database_url=url, poll_seconds=NEVER)) for _ in range(2))
    elsewhere.kind("double")(lambda item: item.input * 2)
    app.kind("double")(lambda item: item.input * 2)
    app.system.count_jobs()
    # A worker's socket whose number is above 1,023.
    held = [open("/dev/null") for _ in range(1_100)]  # noqa: SIM115, PTH123 - closed together, below
    try:
        with capture_logs() as logs, app.working() as worker:
            assert worker.listening.wait(PATIENCE)
            job = elsewhere.submit("double", 4).job
            assert elsewhere.jobs.wait(job.id, timeout=PATIENCE, every=0.01).result == 8
        assert [one for one in logs if one["event"].startswith("cannot listen")] == []
    finally:
        for one in held:
            one.close()
        app.close()
        elsewhere.close()


def test_a_server_that_crashes_and_starts_again_costs_no_item_a_try(tmp_path: Path) -> None:
    """A killed backend makes PostgreSQL end every session, recover, and refuse everybody meanwhile."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(private_postgres(settings=TEST_SERVER | {"synchronous_commit": "on"}))
        except PostgresUnavailable as error:
            unavailable(str(error))
        app = Penstock(
            settings=load_settings(
                database_url=server.url("postgres"), files_directory=str(tmp_path), heartbeat_seconds=0.05
            )
        )
        stack.callback(app.close)
        app.system.migrate()
        crash_at = {100, 400, 700}

        def crash_now(item: ItemContext) -> int:
            if item.input in crash_at:
                crash_at.remove(item.input)
                eventually(lambda: crash(server), PATIENCE)
            return int(item.input)

        app.kind("crashing", concurrency=4)(crash_now)
        job = app.submit("crashing", items=list(range(1_000))).job
        worker = app.worker()
        worker.start()
        stack.callback(worker.stop)
        eventually(lambda: has_ended(app, job.id), PATIENCE)
        done = app.jobs.get(job.id)
        assert (done.state, done.progress.done, done.deaths, crash_at) == (JobState.SUCCEEDED, 1_000, 0, set())
        assert {item.attempts for item in app.items.list(job.id, limit=1_000)} == {1}
        assert violations(app.store) == []


def crash(server: PostgresServer) -> bool:
    """Kill one of its sessions, as the kernel does when memory runs out.

    It answers no while the server recovers from the last time: it refuses sessions then, or has just ended this one.
    """
    try:
        with psycopg.connect(server.url("postgres").replace("+psycopg", ""), autocommit=True) as link:
            os.kill(link.info.backend_pid, signal.SIGKILL)
    except (psycopg.OperationalError, ProcessLookupError):
        return False
    return True


def has_ended(app: Penstock, job_id: UUID) -> bool:
    """Has the job ended? Not as far as anybody can tell while the server is away."""
    try:
        return app.jobs.get(job_id).state in FINISHED
    except StoreUnavailable:
        return False
