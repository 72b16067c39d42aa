"""Connections that the other side closed, cut or forgot: callers do not meet them, and nobody hangs."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import event
from sqlalchemy.engine import make_url

from penstock import ItemContext, Penstock, load_settings
from penstock.app import system as system_module
from penstock.errors import StoreUnavailable
from penstock.lifecycle.job import SubmitOutcome
from penstock.store.dialects.postgresql import engine as postgresql_engine
from penstock.store.engine import Store
from penstock.testing.postgres import PostgresServer
from tests.postgresql.fault_proxy import FaultProxy, fault_proxy
from tests.waiting import eventually

CONNECTIONS = 8
PATIENCE = 30.0


@contextmanager
def watching(server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A connection beside the database under test."""
    with psycopg.connect(
        host=server.host, port=server.port, user=server.user, dbname="postgres", autocommit=True
    ) as link:
        yield link


@pytest.fixture
def database(migrated_postgres_url: str) -> str:
    """The name of the database under test."""
    return str(make_url(migrated_postgres_url).database)


@pytest.fixture
def beside(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with watching(postgres_server) as link:
        yield link


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[FaultProxy]:
    with fault_proxy(postgres_server.port) as one:
        yield one


@pytest.fixture
def open_app(migrated_postgres_url: str, proxy: FaultProxy) -> Iterator[Callable[..., Penstock]]:
    """Makes a Penstock that reaches its database through the proxy."""
    opened: list[Penstock] = []

    def make(**settings: Any) -> Penstock:
        url = make_url(migrated_postgres_url).set(port=proxy.port).render_as_string(hide_password=False)
        app = Penstock(settings=load_settings(database_url=url, **settings))
        app.kind("noop")(lambda item: None)
        opened.append(app)
        return app

    yield make
    proxy.resume()
    for app in opened:
        app.close()


def fill_the_pool(app: Penstock) -> None:
    """Have as many connections as the pool takes, idle: more than there are tries."""
    everybody = threading.Barrier(CONNECTIONS)

    def hold() -> None:
        with app.store.engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            everybody.wait(PATIENCE)

    threads = [threading.Thread(target=hold) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    app.submit("noop")
    app.jobs.list()


def others(link: psycopg.Connection[Any], database: str) -> int:
    """How many connections the server has to the database."""
    row = link.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [database]).fetchone()
    assert row is not None
    return int(row[0])


def by_idle_session_timeout(proxy: FaultProxy, link: psycopg.Connection[Any], database: str) -> None:
    """As the database's own setting has it: see ``end_idle_sessions``."""
    eventually(lambda: others(link, database) == 0 and proxy.links == 0)


def end_idle_sessions(link: psycopg.Connection[Any], database: str) -> None:
    """Let the server end every session to the database that is idle for a second."""
    link.execute(sql.SQL("ALTER DATABASE {} SET idle_session_timeout = '1s'").format(sql.Identifier(database)))


def by_termination(proxy: FaultProxy, link: psycopg.Connection[Any], database: str) -> None:
    link.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database])
    eventually(lambda: others(link, database) == 0 and proxy.links == 0)


def by_reset(proxy: FaultProxy, link: psycopg.Connection[Any], database: str) -> None:
    proxy.cut()


def by_half_close(proxy: FaultProxy, link: psycopg.Connection[Any], database: str) -> None:
    proxy.half_close()


LOSSES = [by_idle_session_timeout, by_termination, by_reset, by_half_close]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_pool_of_closed_connections_is_nobodys_trouble(
    lose: Callable[..., None], open_app: Callable[..., Penstock], proxy: FaultProxy, beside: Any, database: str
) -> None:
    if lose is by_idle_session_timeout:
        end_idle_sessions(beside, database)
    app = open_app()
    fill_the_pool(app)
    before = len(app.jobs.list())
    lose(proxy, beside, database)
    single = app.submit("noop").job  # one statement
    lose(proxy, beside, database)
    several = app.submit("noop", items=[1, 2]).job  # a transaction
    lose(proxy, beside, database)
    assert app.jobs.get(single.id).id == single.id
    assert len(app.items.list(several.id)) == 2
    assert len(app.jobs.list()) == before + 2


def test_a_statement_that_met_the_idle_timeout_did_not_happen_and_is_sent_again(
    open_app: Callable[..., Penstock],
    proxy: FaultProxy,
    beside: Any,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end_idle_sessions(beside, database)
    app = open_app()
    app.submit("noop")
    by_idle_session_timeout(proxy, beside, database)
    # As when the timeout strikes between the look at the socket and the statement.
    monkeypatch.setattr(postgresql_engine, "is_open", lambda driver: True)
    app.submit("noop")
    assert len(app.jobs.list()) == 2


def test_a_statement_whose_fate_is_not_known_is_not_sent_again(
    open_app: Callable[..., Penstock],
    proxy: FaultProxy,
    beside: Any,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app()
    app.submit("noop")
    by_reset(proxy, beside, database)
    monkeypatch.setattr(postgresql_engine, "is_open", lambda driver: True)
    with pytest.raises(StoreUnavailable) as told:
        app.submit("noop")
    assert told.value.code == "COMMIT_UNKNOWN"
    assert len(app.jobs.list()) == 1


def test_a_read_whose_connection_breaks_half_way_is_asked_again(
    open_app: Callable[..., Penstock], proxy: FaultProxy
) -> None:
    app = open_app()
    app.submit("noop")
    cuts: list[str] = []

    @event.listens_for(app.store.engine, "before_cursor_execute")
    def break_it(*_: Any) -> None:
        if len(cuts) < 2:
            cuts.append("cut")
            proxy.cut()

    assert len(app.jobs.list()) == 1
    assert len(cuts) == 2


# The commit -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("landed", [False, True], ids=["lost on the way there", "lost on the way back"])
def test_a_commit_that_is_not_answered_is_told_apart_and_a_key_makes_it_safe_to_repeat(
    landed: bool, open_app: Callable[..., Penstock], proxy: FaultProxy, beside: Any, database: str
) -> None:
    app = open_app(database_timeout_seconds=0.3)
    app.submit("noop")
    lost: list[bool] = []

    @event.listens_for(app.store.engine, "commit")
    def lose(connection: Any) -> None:
        if not lost:
            lost.append(True)
            if landed:
                proxy.swallow(answers_only=True)
            else:
                proxy.cut()

    with pytest.raises(StoreUnavailable) as told:
        app.submit("noop", owner="ada", idempotency_key="order 7")
    assert told.value.code == "COMMIT_UNKNOWN"
    assert "idempotency" in told.value.message
    proxy.resume()
    proxy.cut()
    answer = app.submit("noop", owner="ada", idempotency_key="order 7")
    assert (answer.answer is SubmitOutcome.NEW) is not landed
    assert len(app.jobs.list()) == 2


# A server that says nothing -------------------------------------------------------------------------------------------


def test_a_server_that_does_not_answer_is_an_error_and_not_a_hang(
    open_app: Callable[..., Penstock], proxy: FaultProxy
) -> None:
    app = open_app(database_timeout_seconds=0.3)
    job = app.submit("noop").job
    proxy.swallow()
    codes = []
    for ask in (lambda: app.jobs.get(job.id), lambda: app.submit("noop")):
        with pytest.raises(StoreUnavailable) as told:
            ask()
        codes.append(told.value.code)
    # The first has a connection and waits for its answer; the other cannot even get one.
    assert codes == ["DB_TIMEOUT", "DB_CONN_REFUSED"]
    proxy.resume()
    assert [one.id for one in app.jobs.list()] == [job.id]


def test_a_frozen_backend_is_an_error_and_not_a_hang(
    open_app: Callable[..., Penstock], beside: Any, database: str
) -> None:
    app = open_app(database_timeout_seconds=0.3)
    job = app.submit("noop").job
    app.jobs.get(job.id)
    rows = beside.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [database]).fetchall()
    frozen = [row[0] for row in rows]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailable) as told:
            app.jobs.get(job.id)
        assert told.value.code == "DB_TIMEOUT"
        assert "PENSTOCK_DATABASE_TIMEOUT_SECONDS" in told.value.message
        assert app.jobs.get(job.id).id == job.id  # the others are not trusted any more: this one is new
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)


def test_what_takes_too_long_is_stopped_in_the_server_too(
    open_app: Callable[..., Penstock], beside: Any, database: str
) -> None:
    app = open_app(database_timeout_seconds=0.3)
    with pytest.raises(StoreUnavailable) as told:
        app.in_transaction(
            lambda link: link.exec_driver_sql("SELECT pg_sleep(3600)"), reads=True, single_statement=True
        )
    assert told.value.code == "DB_TIMEOUT"
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND query LIKE %s AND state = 'active'"
    eventually(lambda: beside.execute(asked, [database, "SELECT pg_sleep%"]).fetchone() == (0,))


def test_a_migration_may_take_its_time(open_app: Callable[..., Penstock], monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(database_timeout_seconds=0.3)
    longer: list[Any] = []

    def migrate(store: Store, schemas: Any, **_: Any) -> None:
        with store.engine.connect() as connection:
            longer.append(connection.exec_driver_sql("SELECT 'done' FROM pg_sleep(0.6)").scalar())

    monkeypatch.setattr(system_module, "migrate", migrate)
    app.system.migrate()
    assert longer == ["done"]


# What the log says ----------------------------------------------------------------------------------------------------


def test_a_lost_connection_is_a_line_in_the_log_and_not_a_traceback(
    open_app: Callable[..., Penstock], proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    app = open_app(heartbeat_seconds=0.02, sweep_seconds=0.02, poll_seconds=0.05)
    held = threading.Event()

    @app.kind("long")
    def long(item: ItemContext) -> None:
        held.wait(PATIENCE)

    caplog.set_level(logging.INFO)
    with app.working() as worker:
        assert worker.listening.wait(PATIENCE)
        worker.signals.listen()
        app.submit("long")
        assert worker.signals.wait("claimed", timeout=PATIENCE)
        proxy.refuse()
        said = {"lane": "the lane's work failed", "duty": "a duty failed", "listener": "cannot listen for new work"}
        eventually(lambda: all(words in caplog.text for words in said.values()))
        with pytest.raises(StoreUnavailable):
            app.jobs.list()
        proxy.resume()
        held.set()
    assert [one.getMessage() for one in caplog.records if one.exc_info] == []
    assert "Traceback" not in caplog.text
