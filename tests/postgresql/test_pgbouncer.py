"""Behind a real PgBouncer, in session and in transaction mode, with few server sessions that everybody shares."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url
from structlog.testing import capture_logs

from penstock import ItemContext, JobContext, JobState, Penstock, Retryable, load_settings
from penstock.cli.config import _check
from penstock.errors import StoreUnavailable
from penstock.store import notifier
from penstock.store.database_url import describe_connection
from penstock.store.dialects.dialect import CannotListen
from penstock.store.dialects.postgresql.engine import PLANNING
from penstock.store.dialects.postgresql.listener import PostgreSQLListener
from penstock.store.revisions import OURS
from penstock.testing.invariants import violations
from penstock.testing.postgres import PostgresServer
from tests.conftest import unavailable
from tests.migrations.layouts import make_old_layout
from tests.postgresql.pgbouncer import PgBouncer, PgBouncerUnavailable, private_pgbouncer
from tests.waiting import eventually

PATIENCE = 60.0
NEVER = 3600.0
SERVER_SESSIONS = 3
"""Fewer than the clients have connections, in transaction mode."""


def pooler(server: PostgresServer, mode: str, **settings: str) -> Iterator[PgBouncer]:
    with ExitStack() as stack:
        try:
            yield stack.enter_context(private_pgbouncer(server, mode, **settings))
        except PgBouncerUnavailable as error:
            unavailable(str(error))


@pytest.fixture(scope="module")
def in_transactions(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    yield from pooler(postgres_server, "transaction", default_pool_size=str(SERVER_SESSIONS))


@pytest.fixture(scope="module")
def in_sessions(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    yield from pooler(postgres_server, "session", default_pool_size="40")


@pytest.fixture(scope="module")
def ignoring_options(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    yield from pooler(postgres_server, "transaction", ignore_startup_parameters="options")


@pytest.fixture
def database(migrated_postgres_url: str) -> str:
    return str(make_url(migrated_postgres_url).database)


@pytest.fixture
def open_app() -> Iterator[Callable[..., Penstock]]:
    opened: list[Penstock] = []

    def make(url: str, **settings: Any) -> Penstock:
        quick = {"database_url": url, "heartbeat_seconds": 0.05, "sweep_seconds": 0.1, "pool_size": 4}
        app = Penstock(settings=load_settings(**quick | settings))
        app.kind("double")(lambda item: item.input * 2)
        opened.append(app)
        return app

    yield make
    for app in opened:
        app.close()


def describe_shop(app: Penstock, sent: list[Any]) -> None:
    """A kind with everything: a plan, tries that fail, a finalize step; and messages."""

    @app.kind("sum", backoff="1ms fixed", concurrency=4)
    class Sum:
        def plan(self, job: JobContext) -> Any:
            yield from range(job.params)

        def process(self, item: ItemContext) -> int:
            if item.input % 10 == 3 and item.attempt < 2:
                raise Retryable("not yet")
            return int(item.input)

        def finalize(self, job: JobContext) -> int:
            app.messages.publish("sums", {"job": str(job.id)})
            return sum(job.results())

    app.messages.subscribe("sums")(sent.append)


@pytest.mark.parametrize("mode", ["in_transactions", "in_sessions"])
def test_everything_works_and_nothing_is_left_in_the_servers_sessions(
    mode: str, request: pytest.FixtureRequest, database: str, open_app: Callable[..., Penstock]
) -> None:
    url = request.getfixturevalue(mode).url(database)
    sent: list[Any] = []
    apps = [open_app(url) for _ in range(3)]
    for app in apps:
        describe_shop(app, sent)
    client = apps[0]
    with apps[1].working(), apps[2].working():
        paused = client.submit("sum", 10, hold=True).job
        sums = [client.submit("sum", 40, unique_key=str(number), owner="ada").job for number in range(6)]
        singles = [client.submit("double", number).job for number in range(40)]  # each statement more than five times
        client.jobs.release(paused.id)
        stopped = client.submit("sum", 5_000).job
        client.jobs.pause(stopped.id)
        client.jobs.resume(stopped.id)
        client.jobs.cancel(stopped.id)
        for number, job in enumerate(singles):
            assert client.jobs.wait(job.id, timeout=PATIENCE, every=0.05).result == number * 2
        for job in sums:
            assert client.jobs.wait(job.id, timeout=PATIENCE, every=0.05).result == sum(range(40))
        assert client.jobs.wait(paused.id, timeout=PATIENCE, every=0.05).result == 45
        eventually(lambda: len(sent) >= 7)
        client.system.sweep()
    assert client.jobs.get(stopped.id).state is JobState.CANCELED
    assert violations(client.store) == []
    if mode == "in_transactions":
        nothing_is_left(url)


def nothing_is_left(url: str) -> None:
    """Look at every session of the pool, as another client of it."""
    settings = dict(_defaults(url))
    with ExitStack() as stack:
        seen: set[int] = set()
        for _ in range(SERVER_SESSIONS):
            link = stack.enter_context(psycopg.connect(_libpq(url), prepare_threshold=None))
            row = link.execute("SELECT pg_backend_pid()").fetchone()
            assert row is not None
            seen.add(row[0])  # the transaction stays open: the next one gets another session
            for name, value in settings.items():
                assert link.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,), name
            assert link.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            assert link.execute("SELECT count(*) FROM pg_listening_channels()").fetchone() == (0,)
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            assert link.execute(held).fetchone() == (0,)
        assert len(seen) == SERVER_SESSIONS


def _defaults(url: str) -> list[tuple[str, str]]:
    with psycopg.connect(_libpq(url), prepare_threshold=None) as link:
        return link.execute(
            "SELECT name, reset_val FROM pg_settings WHERE name = ANY(%s)", [[*PLANNING, "lock_timeout"]]
        ).fetchall()


def _libpq(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.mark.parametrize("mode", ["in_transactions", "in_sessions"])
def test_the_tables_are_made_and_brought_up_to_date_through_the_pooler(
    mode: str, request: pytest.FixtureRequest, postgres_url: str, open_app: Callable[..., Penstock]
) -> None:
    """From the oldest layout: its tables are moved, revisions follow, and indexes are built outside of transactions."""
    make_old_layout(postgres_url)
    app = open_app(request.getfixturevalue(mode).url(make_url(postgres_url).database))
    app.system.migrate()
    job = app.submit("double", 2).job
    assert app.drain(timeout=PATIENCE)
    assert app.jobs.get(job.id).result == 4
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as direct:
        [(unfinished,)] = direct.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchall()
        [(revision,)] = direct.execute("SELECT version_num FROM penstock.penstock_version").fetchall()
    assert (unfinished, revision) == (0, OURS.head)


def test_directly_the_planner_is_told_by_the_connection_itself(
    migrated_postgres_url: str, open_app: Callable[..., Penstock]
) -> None:
    app = open_app(f"{migrated_postgres_url}?options=-c%20statement_timeout%3D12345")
    with app.store.engine.connect() as connection:
        for name, value in PLANNING.items():
            assert connection.exec_driver_sql(f"SHOW {name}").scalar() == value
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "12345ms"
    with psycopg.connect(_libpq(migrated_postgres_url)) as link:
        assert link.execute("SHOW enable_hashjoin").fetchone() == ("on",)


# Listening ------------------------------------------------------------------------------------------------------------


def test_in_transaction_mode_a_worker_says_that_it_cannot_hear_and_looks_more_often(
    in_transactions: PgBouncer, database: str, open_app: Callable[..., Penstock]
) -> None:
    app, elsewhere = (open_app(in_transactions.url(database), poll_seconds=NEVER) for _ in range(2))
    with capture_logs() as logs, app.working() as worker:
        eventually(lambda: any("PENSTOCK_LISTEN_URL" in one["event"] for one in logs))
        job = elsewhere.submit("double", 21).job
        assert elsewhere.jobs.wait(job.id, timeout=PATIENCE, every=0.05).result == 42
        assert not worker.listening.is_set()
    [said] = [one for one in logs if "PENSTOCK_LISTEN_URL" in one["event"]]
    assert (said["log_level"], said["every_seconds"]) == ("warning", notifier.DEAF_POLL_SECONDS)
    assert "transaction mode" in said["reason"]
    nothing_is_left(in_transactions.url(database))


def test_a_busy_pool_deceives_nobody(
    in_transactions: PgBouncer, database: str, open_app: Callable[..., Penstock]
) -> None:
    """Who waits for a session may get the same one again and again, as if it were their own."""
    app = open_app(in_transactions.url(database))
    over = threading.Event()

    def be_busy() -> None:
        with psycopg.connect(_libpq(in_transactions.url(database)), prepare_threshold=None, autocommit=True) as link:
            while not over.is_set():
                with link.transaction():
                    link.execute("SELECT pg_sleep(0.0005)")

    with ThreadPoolExecutor() as threads:
        try:
            busy = [threads.submit(be_busy) for _ in range(2 * SERVER_SESSIONS)]
            for _ in range(40):
                with pytest.raises(CannotListen, match="transaction mode"):
                    PostgreSQLListener(app.store).listen(over.set, lambda notices: None)
            assert not over.is_set()
        finally:
            over.set()
        for client in busy:
            client.result()
    nothing_is_left(in_transactions.url(database))


@pytest.mark.parametrize("mode", ["in_transactions", "in_sessions"])
def test_work_is_heard_of_by_a_direct_connection_and_by_a_session_of_ones_own(
    mode: str,
    request: pytest.FixtureRequest,
    database: str,
    migrated_postgres_url: str,
    open_app: Callable[..., Penstock],
) -> None:
    listen_url = migrated_postgres_url if mode == "in_transactions" else None
    url = request.getfixturevalue(mode).url(database)
    app, elsewhere = (open_app(url, poll_seconds=NEVER, listen_url=listen_url) for _ in range(2))
    with capture_logs() as logs, app.working() as worker:
        assert worker.listening.wait(PATIENCE)
        job = elsewhere.submit("double", 21).job  # nobody looks for it for an hour
        assert elsewhere.jobs.wait(job.id, timeout=PATIENCE, every=0.05).result == 42
    assert [one for one in logs if one["log_level"] == "warning"] == []


# What is said of it ---------------------------------------------------------------------------------------------------


def test_the_check_says_how_the_database_is_reached(
    in_transactions: PgBouncer,
    in_sessions: PgBouncer,
    ignoring_options: PgBouncer,
    database: str,
    migrated_postgres_url: str,
    open_app: Callable[..., Penstock],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said(url: str, **settings: Any) -> list[str]:
        _check(open_app(url, **settings))
        return capsys.readouterr().out.splitlines()[1:3]

    direct = said(migrated_postgres_url)
    assert direct[0].endswith("is reached directly; statements are prepared there")
    assert direct[1] == "workers hear of new work at once"
    for pooled in (in_transactions, ignoring_options):
        way, hearing = said(pooled.url(database))
        assert way.endswith("is reached through a pooler; statements are not prepared there")
        assert hearing.startswith("workers do not hear of new work and look for it instead: the pooler hands")
        assert hearing.endswith("set PENSTOCK_LISTEN_URL to an address that leads to the server directly")
    assert said(in_sessions.url(database))[1] == "workers hear of new work at once"
    kept = said(in_sessions.url(database), prepared_statements="on", listen_url=migrated_postgres_url)
    assert kept[0].endswith("is reached through a pooler; statements are prepared there")
    off = said(migrated_postgres_url, prepared_statements="off")
    assert off[0].endswith("is reached directly; statements are not prepared there")


def test_the_check_refuses_an_address_to_listen_at_where_nobody_is(
    migrated_postgres_url: str, open_app: Callable[..., Penstock]
) -> None:
    nobody = make_url(migrated_postgres_url).set(port=1).render_as_string(hide_password=False)
    with pytest.raises(StoreUnavailable, match=r"PENSTOCK_LISTEN_URL cannot be used: .*refused"):
        _check(open_app(migrated_postgres_url, listen_url=nobody))


@pytest.mark.parametrize(("asked", "prepared"), [("auto", False), ("on", True)])
def test_statements_are_prepared_behind_a_pooler_when_the_operator_says_so(
    asked: str, prepared: bool, in_sessions: PgBouncer, database: str, open_app: Callable[..., Penstock]
) -> None:
    app = open_app(in_sessions.url(database), prepared_statements=asked)
    with app.store.engine.connect() as connection:
        counts = [connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar() for _ in range(10)]
    assert (counts[-1] == 1) is prepared


def test_an_embedded_database_has_no_connection_to_describe() -> None:
    app = Penstock("sqlite://")
    assert describe_connection(app.store) == []
    app.close()
