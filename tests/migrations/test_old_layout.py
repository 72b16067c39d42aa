"""A database in the layout of an earlier version is brought over whole, or not at all, and only while nobody works."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from penstock import Penstock
from penstock.errors import ConfigurationError, SchemaOutOfDate, StoreUnavailable
from penstock.settings import load_settings
from penstock.store.engine import Store, open_store
from penstock.store.peers import Peers
from penstock.store.schema import OURS, Patience, Schema, current_revision, migrate
from penstock.store.tables import metadata
from penstock.testing.fault_points import StoppedDead, stop_migration_dead_at
from tests.migrations.layouts import make_old_layout, tables_by_schema
from tests.sizes import size

CATALOGS = Schema.of_app("catalogs", "penstock_apps.catalogs", "0002")
QUICK = Patience(lock_timeout=0.5, wait=1.0)
JOB = "00000000-0000-0000-0000-000000000007"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/old.db"
    made: str = request.getfixturevalue("postgres_url")
    return made


@pytest.fixture
def opened(url: str) -> Iterator[list[Store]]:
    """Stores that are closed in the end."""
    stores: list[Store] = []
    yield stores
    for one in stores:
        one.close()


def penstock(url: str) -> Penstock:
    app = Penstock(settings=load_settings(database_url=url))

    @app.kind("greet")
    def greet(item):
        return f"hello {item.input['name']}"

    return app


def execute(url: str, *statements: str) -> list[tuple[object, ...]]:
    """As somebody else does; the answer is the last statement's."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for one in statements[:-1]:
            connection.execute(text(one))
        result = connection.execute(text(statements[-1]))
        rows = [tuple(row) for row in result] if result.returns_rows else []
    engine.dispose()
    return rows


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004"])
def test_the_job_that_waited_there_is_done(url: str, revision: str) -> None:
    make_old_layout(url, revision)
    app = penstock(url)
    if "sqlite" not in url:
        with pytest.raises(SchemaOutOfDate, match="lies where an earlier version put it: stop the workers"):
            app.jobs.list()
        app.system.migrate()
    [job] = app.jobs.list()
    assert str(job.id) == JOB
    assert app.drain()
    assert app.jobs.get(job.id).result == "hello Ada"
    app.close()
    engine = create_engine(url)
    found = tables_by_schema(engine)
    engine.dispose()
    ours = {*metadata.tables, "penstock_version"}
    assert found == ({"main": ours} if "sqlite" in url else {"public": set(), "penstock": ours})


def test_a_teams_revisions_and_tables_stay_where_they_are(url: str) -> None:
    """Theirs is called 0003, as one of ours once was."""
    make_old_layout(url)
    execute(url, "INSERT INTO alembic_version VALUES ('0003')", "CREATE TABLE users (id integer)")
    app = penstock(url)
    app.system.migrate()
    app.system.migrate()
    assert len(app.jobs.list()) == 1
    app.close()
    assert execute(url, "SELECT version_num FROM alembic_version") == [("0003",)]
    engine = create_engine(url)
    found = tables_by_schema(engine)
    engine.dispose()
    if "sqlite" in url:
        assert {"users", "alembic_version"} < found["main"]
        assert {f"penstock_{name}" for name in metadata.tables} < found["main"]
        assert not found["main"] & set(metadata.tables), "what was plain got the prefix"
        plain = execute(url, "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'ix_%'")
        assert plain == []
    else:
        assert found == {"public": {"users", "alembic_version"}, "penstock": {*metadata.tables, "penstock_version"}}


def test_tables_of_an_application_come_along(url: str, opened: list[Store]) -> None:
    make_old_layout(url, applications=("catalogs",))
    store = open_store(url)
    opened.append(store)
    migrate(store, (OURS, CATALOGS))
    assert current_revision(store, CATALOGS) == CATALOGS.head
    names = set().union(*tables_by_schema(store.engine).values())
    assert {"catalogs", "photos", "penstock_version_catalogs"} < names
    assert not any(name.startswith("alembic_version") for name in names)


def test_tables_of_an_application_that_is_added_later_come_along_then(url: str, opened: list[Store]) -> None:
    make_old_layout(url, applications=("catalogs",))
    store = open_store(url)
    opened.append(store)
    migrate(store)
    migrate(store, (OURS, CATALOGS))
    placed = {store.placement.table(name) for name in ("catalogs", "photos")}
    assert placed < tables_by_schema(store.engine)[store.placement.schema or "main"]
    assert current_revision(store, CATALOGS) == CATALOGS.head


def test_stopped_dead_anywhere_all_of_it_happened_or_nothing(
    url: str, opened: list[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layout is looked at after a stop at the step's statements and commits, with TESTS_LARGE=1 at each of them."""
    # What looks for blockers would come to points of its own.
    monkeypatch.setattr("penstock.store.lock_waiting._LOOK_SECONDS", 1000.0)
    make_old_layout(url, applications=("catalogs",))
    execute(url, "CREATE TABLE users (id integer)")
    seen = []
    for number in count(step=size(5, 1)):
        store = open_store(url)
        opened.append(store)
        try:
            with stop_migration_dead_at(store, number):
                migrate(store, (OURS, CATALOGS), patience=Patience(lock_timeout=4000.0))
        except StoppedDead:
            stopped = True
        else:
            stopped = False
        engine = create_engine(url)
        found = set().union(*tables_by_schema(engine).values())
        engine.dispose()
        # Ours and an application's move in one transaction; revisions behind it come one by one.
        moved = "penstock_version" in found
        assert moved == ("alembic_version" not in found) == ("alembic_version_catalogs" not in found), number
        assert moved == ("penstock_version_catalogs" in found), number
        seen.append(moved)
        if not stopped:
            break
    assert seen == sorted(seen)
    assert seen.count(False) > 4, "it was stopped within the step"
    app = penstock(url)
    app.system.migrate()
    assert app.drain()
    assert app.jobs.get(app.jobs.list()[0].id).result == "hello Ada"
    app.close()


class TestWorkers:
    """Nobody may be at work."""

    @staticmethod
    def refused(url: str) -> str:
        """What the migration says."""
        app = penstock(url)
        with pytest.raises(ConfigurationError, match="needs stopped workers") as refused:
            app.system.migrate()
        assert refused.value.code == "SCHEMA_IN_USE"
        engine = create_engine(url)
        found = set().union(*tables_by_schema(engine).values())
        engine.dispose()
        assert "alembic_version" in found
        assert "penstock_version" not in found
        return str(refused.value)

    @staticmethod
    def sign_in(url: str, name: str, seconds_ago: int) -> None:
        now = "CAST(unixepoch() AS INTEGER)" if "sqlite" in url else "now()"
        ago = f"({now} - {seconds_ago}) * 1000000" if "sqlite" in url else f"now() - interval '{seconds_ago} s'"
        execute(url, f"INSERT INTO workers (name, started_at, seen_at, data) VALUES ('{name}', {ago}, {ago}, '{{}}')")

    @staticmethod
    def hold(url: str, name: str, seconds: int) -> None:
        now = "CAST(unixepoch() AS INTEGER)" if "sqlite" in url else "now()"
        until = f"({now} + {seconds}) * 1000000" if "sqlite" in url else f"now() + interval '{seconds} s'"
        execute(
            url,
            f"UPDATE job_items SET status = 'PROCESSING', lease = '00000000000000000000000000000001', "
            f"locked_by = '{name}', lock_expires_at = {until}",
        )

    def test_one_that_was_seen_lately_is_named(self, url: str) -> None:
        make_old_layout(url)
        self.sign_in(url, "shop-1", 5)
        assert "shop-1 (seen at " in self.refused(url)

    def test_one_that_holds_items_is_named(self, url: str) -> None:
        make_old_layout(url)
        self.hold(url, "shop-2", 60)
        assert "shop-2 (holds 1 items)" in self.refused(url)

    def test_one_that_answers_on_this_machine_is_named(self, url: str, opened: list[Store]) -> None:
        make_old_layout(url)
        opened.append(open_store(url))
        presence = Peers.of(opened[0].engine.url).settle("shop-3")
        assert presence is not None
        try:
            assert "shop-3 (it answers on this machine)" in self.refused(url)
        finally:
            presence.leave()

    def test_one_that_is_long_gone_is_not_waited_for(self, url: str) -> None:
        make_old_layout(url)
        self.sign_in(url, "gone", 60)
        self.hold(url, "gone", -1)
        app = penstock(url)
        app.system.migrate()
        assert len(app.jobs.list()) == 1
        app.close()

    def test_one_that_was_killed_on_this_machine_is_not_waited_for(self, url: str, opened: list[Store]) -> None:
        """Its socket refuses: that is how a file is opened again at once after a crash of `penstock serve`."""
        make_old_layout(url)
        self.sign_in(url, "killed", 1)
        self.hold(url, "killed", 60)
        opened.append(open_store(url))
        presence = Peers.of(opened[0].engine.url).settle("killed")
        assert presence is not None
        presence._socket.close()  # as the kernel does
        app = penstock(url)
        app.system.migrate()
        assert len(app.jobs.list()) == 1
        app.close()
        Peers.of(opened[0].engine.url).forget("killed")


def test_a_session_that_holds_a_lock_is_named(postgres_url: str, opened: list[Store]) -> None:
    make_old_layout(postgres_url)
    store = open_store(postgres_url)
    opened.append(store)
    engine = create_engine(postgres_url, connect_args={"application_name": "a report"})
    with engine.connect() as holding:
        holding.execute(text("SELECT count(*) FROM jobs"))
        with pytest.raises(
            StoreUnavailable, match=r"'a report' of postgres, idle in transaction since .*count"
        ) as told:
            migrate(store, patience=QUICK)
    assert told.value.code == "SCHEMA_LOCKED"
    engine.dispose()
    assert "alembic_version" in tables_by_schema(store.engine)["public"]
