"""Migrating a PostgreSQL database that is in service: others go on, who is in the way is named, and it ends."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import op
from sqlalchemy import Engine, create_engine, inspect, text

from penstock import Penstock
from penstock.errors import StoreUnavailable
from penstock.settings import load_settings
from penstock.store import revisions
from penstock.store import schema as schema_module
from penstock.store.engine import Store, open_store
from penstock.store.migrations.indexes import NewIndex
from penstock.store.schema import OURS, Patience, Schema, current_revision, migrate

pytestmark = pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
NEXT = Schema(OURS.name, OURS.package, "9001", OURS.version_table)
INDEX = NewIndex("ix_jobs_title", "jobs", ("title", "created_at"), where="title IS NOT NULL")


def revision(number: str, **words: Any) -> ModuleType:
    """A revision as a later version would bring it."""
    module = ModuleType(f"revision_{number}")
    vars(module).update(revision=number, **words)
    return module


@pytest.fixture
def store(migrated_url: str) -> Iterator[Store]:
    """A database with our tables."""
    opened = open_store(migrated_url)
    yield opened
    opened.close()


@pytest.fixture
def to_come(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put revisions behind ours."""

    def put(*modules: ModuleType) -> None:
        def pending(schema: Schema, since: str | None) -> list[ModuleType]:
            return [one for one in modules if one.revision > (since or "")]

        monkeypatch.setattr(schema_module, "pending", pending)

    return put


def add_a_column() -> None:
    op.add_column("jobs", sa.Column("color", sa.String(16), nullable=True))


@pytest.fixture
def reporter(store: Store) -> Iterator[Engine]:
    """Somebody else's program."""
    engine = create_engine(store.engine.url, connect_args={"application_name": "a report"})
    yield engine
    engine.dispose()


class Migrating:
    """A migration in a thread of its own, and what it says."""

    def __init__(self, store: Store, **patience: float) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(store, Patience(**patience)))
        self._thread.start()

    def _run(self, store: Store, patience: Patience) -> None:
        try:
            migrate(store, (NEXT,), patience=patience, say=self._say)
        except BaseException as error:
            self._error = error

    def _say(self, line: str) -> None:
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def said(self, pattern: str) -> str:
        """Wait until it has said this."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(re.search(pattern, one) for one in self.lines), 20), self.lines
            return next(one for one in self.lines if re.search(pattern, one))

    def end(self) -> None:
        """Wait until it is over; what it raised is raised."""
        self._thread.join(30)
        assert not self._thread.is_alive(), self.lines
        if self._error is not None:
            raise self._error


HELD = r"held by pid \d+ 'a report' of postgres, idle in transaction since [^:]+:\d\d:\d\d\+0000: SELECT count"


def test_others_go_on_while_it_waits_and_it_ends_with_the_transaction_in_its_way(
    store: Store, to_come: Callable[..., None], reporter: Engine
) -> None:
    to_come(revision("9001", upgrade=add_a_column))
    url = store.engine.url.render_as_string(hide_password=False)
    app = Penstock(settings=load_settings(database_url=url))

    @app.kind("greet")
    def greet(item):
        return "hello"

    with reporter.connect() as holding:
        holding.execute(text("SELECT count(*) FROM penstock.jobs"))
        migration = Migrating(store, lock_timeout=0.5, wait=120.0)
        said = migration.said("waiting for the tables of penstock")
        assert re.search(HELD, said), said
        # Several tries of the migration fall into these, and none of them keeps us.
        for _ in range(20):
            job = app.submit("greet").job
            assert app.drain(timeout=30.0)
            assert app.jobs.get(job.id).result == "hello"
        assert current_revision(store) == OURS.head
    migration.end()
    assert current_revision(store) == "9001"
    assert "color" in {one["name"] for one in inspect(store.engine).get_columns("jobs", schema="penstock")}
    app.close()


def test_it_gives_up_and_names_who_was_in_the_way(store: Store, to_come: Callable[..., None], reporter: Engine) -> None:
    to_come(revision("9001", upgrade=add_a_column))
    with reporter.connect() as holding:
        holding.execute(text("SELECT count(*) FROM penstock.jobs"))
        migration = Migrating(store, lock_timeout=0.5, wait=0.6)
        with pytest.raises(StoreUnavailable, match=HELD) as told:
            migration.end()
    assert told.value.code == "SCHEMA_LOCKED"
    assert current_revision(store) == OURS.head
    assert migration.lines[0] == "penstock: revision 9001"


def test_another_migration_is_waited_for_and_named(
    store: Store, to_come: Callable[..., None], reporter: Engine
) -> None:
    """By a lock of a transaction, which also a pooler in transaction mode keeps."""
    to_come(revision("9001", upgrade=add_a_column))
    with reporter.connect() as holding:
        holding.execute(text("SELECT pg_advisory_xact_lock(hashtext('penstock.migrate'), hashtext('penstock'))"))
        migration = Migrating(store, lock_timeout=0.5, wait=120.0)
        assert "'a report'" in migration.said("waiting for another migration")
        assert current_revision(store) == OURS.head
    migration.end()
    assert current_revision(store) == "9001"


def is_valid(store: Store) -> bool | None:
    with store.engine.connect() as connection:
        asked = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('penstock.ix_jobs_title')"
        found: bool | None = connection.execute(text(asked)).scalar()
        return found


def test_an_index_is_built_while_others_write(store: Store, to_come: Callable[..., None], reporter: Engine) -> None:
    """Whoever has written to the table and not yet committed is waited for, and nobody waits for us."""
    to_come(revision("9001", indexes=(INDEX,)))
    url = store.engine.url.render_as_string(hide_password=False)
    app = Penstock(settings=load_settings(database_url=url))
    app.kind("greet")(lambda item: "hello")
    with reporter.connect() as holding:
        holding.execute(text("UPDATE penstock.jobs SET title = 'x'"))
        holding.execute(text("SELECT count(*) FROM penstock.jobs"))
        migration = Migrating(store, lock_timeout=0.5, wait=120.0)
        migration.said("building index ix_jobs_title on jobs")
        assert re.search(HELD, migration.said("waiting for index ix_jobs_title"))
        migration.said("index ix_jobs_title: waiting for writers before build")
        app.submit("greet")
        assert app.drain(timeout=30.0)
        holding.rollback()
    migration.end()
    assert is_valid(store)
    assert current_revision(store) == "9001"
    app.close()


def test_an_index_that_was_left_unfinished_is_built_again(
    store: Store, to_come: Callable[..., None], reporter: Engine
) -> None:
    to_come(revision("9001", indexes=(INDEX,)))
    with reporter.connect() as holding:
        holding.execute(text("UPDATE penstock.jobs SET title = 'x'"))
        holding.execute(text("SELECT count(*) FROM penstock.jobs"))
        migration = Migrating(store, lock_timeout=0.5, wait=0.6)
        with pytest.raises(StoreUnavailable, match=HELD) as told:
            migration.end()
    assert told.value.code == "SCHEMA_LOCKED"
    assert is_valid(store) is False, "the database keeps what it had of it"
    assert current_revision(store) == OURS.head
    again = Migrating(store)
    again.end()
    assert "index ix_jobs_title was left unfinished: it is dropped and built again" in again.lines
    assert is_valid(store)


def test_an_index_that_is_there_already_is_not_built_twice(store: Store, to_come: Callable[..., None]) -> None:
    """It was built, and the program died before it wrote the revision."""
    to_come(revision("9001", indexes=(INDEX,)))
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        revisions.build_concurrently(connection, INDEX)
    migration = Migrating(store)
    migration.end()
    assert migration.lines == ["penstock: revision 9001"]
    assert current_revision(store) == "9001"
