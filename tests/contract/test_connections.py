"""Connections kept for the next transaction, and statements made ready once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, bindparam, create_engine, insert, select, text
from sqlalchemy.pool import QueuePool

from penstock import Penstock, load_settings
from penstock.errors import StoreUnavailable
from penstock.store.engine import Store
from penstock.store.kept_connections import KeptConnections
from penstock.store.statement_cache import prepare
from penstock.store.tables import files, jobs
from penstock.store.transaction import Transaction


@pytest.fixture
def engine() -> Iterator[Engine]:
    one = create_engine("sqlite://", poolclass=QueuePool, pool_size=4, max_overflow=0)
    yield one
    one.dispose()


def checked_out(engine: Engine) -> int:
    """How many connections are out of the pool."""
    assert isinstance(engine.pool, QueuePool)
    return engine.pool.checkedout()


def test_a_connection_is_kept_and_used_again(engine: Engine) -> None:
    kept = KeptConnections(engine, max_idle=1)
    with kept.lend() as first:
        pass
    with kept.lend() as second:
        assert second is first
    assert checked_out(engine) == 1
    kept.close()
    assert checked_out(engine) == 0


def test_no_more_are_kept_than_allowed(engine: Engine) -> None:
    kept = KeptConnections(engine, max_idle=1, isolation_level="AUTOCOMMIT")
    with kept.lend() as first, kept.lend() as second:
        assert first is not second
        assert first.get_execution_options()["isolation_level"] == "AUTOCOMMIT"
    assert checked_out(engine) == 1
    none = KeptConnections(engine, max_idle=0)
    with none.lend():
        pass
    assert checked_out(engine) == 1
    kept.close()


def test_one_that_cannot_be_used_any_more_is_not_handed_out(engine: Engine) -> None:
    closed: list[Connection] = []
    kept = KeptConnections(engine, max_idle=3, is_usable=lambda one: one not in closed)
    with kept.lend() as first, kept.lend() as second:
        pass
    closed += [first, second]
    with kept.lend() as fresh, fresh.begin():
        assert fresh not in closed
        assert fresh.execute(text("SELECT 1")).scalar() == 1
        fresh.rollback()  # one that is left in a transaction would not be kept
    assert checked_out(engine) == 1
    kept.close()


def test_when_one_is_broken_none_of_the_others_is_trusted(engine: Engine) -> None:
    kept = KeptConnections(engine, max_idle=3)
    with kept.lend(), kept.lend() as broken:
        broken.invalidate()
    assert checked_out(engine) <= 1
    with kept.lend() as fresh:
        assert fresh.execute(text("SELECT 1")).scalar() == 1
    kept.close()


def test_after_a_servers_restart_no_call_fails(postgres_url: str) -> None:
    app = Penstock(settings=load_settings(database_url=postgres_url))
    app.system.migrate()
    app.kind("noop")(lambda item: None)
    for _ in range(3):
        app.submit("noop")
    other = create_engine(app.store.engine.url)
    with other.connect() as link:
        link.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    other.dispose()
    app.submit("noop")
    assert len(app.jobs.list()) == 4
    app.close()


def test_a_statement_is_made_ready_once(store: Store) -> None:
    statement = select(jobs.c.id).where(jobs.c.kind == bindparam("kind"))
    dialect = store.engine.dialect
    assert prepare(statement, dialect) is prepare(statement, dialect)
    assert store.read(lambda one: one.values(UUID, statement, {"kind": "none"})) == []


def test_a_parameter_that_is_missing_is_named(store: Store) -> None:
    statement = select(jobs.c.id).where(jobs.c.kind == bindparam("kind"))
    with pytest.raises(KeyError, match="kind"):
        store.read(lambda one: one.values(UUID, statement))


class FileRow(NamedTuple):
    """Some of what is kept of a file."""

    id: UUID
    name: str
    size_bytes: int
    user_id: str | None
    created_at: datetime


SOME_OF_A_FILE = select(*(files.c[name] for name in FileRow._fields))


def test_values_come_back_as_they_went_in(store: Store) -> None:
    file_id = uuid4()
    row = {"id": file_id, "name": "% and %(name)s", "size_bytes": 2**40, "sha256": "f" * 64}
    now = store.dialect.now()
    store.write(lambda one: one.execute(insert(files).values(**row, created_at=now)))
    [found] = store.read(lambda one: one.fetch(FileRow, SOME_OF_A_FILE))
    assert found == store.read(lambda one: one.fetch_one(FileRow, SOME_OF_A_FILE))
    assert isinstance(found, FileRow)
    assert (found.id, found.name, found.size_bytes, found.user_id) == (file_id, "% and %(name)s", 2**40, None)
    assert found.created_at.tzinfo is not None


def test_there_may_be_no_row(store: Store) -> None:
    assert store.read(lambda one: one.fetch_one(FileRow, SOME_OF_A_FILE)) is None
    assert store.read(lambda one: one.value(UUID, select(files.c.id))) is None


def test_a_row_whose_fields_are_not_the_columns_is_refused(store: Store) -> None:
    columns = [files.c[name] for name in FileRow._fields]
    for wrong in (select(*columns[1:]), select(*columns[::-1]), select(*columns, files.c.sha256)):
        with pytest.raises(TypeError, match="FileRow has the fields"):
            store.read(partial(Transaction.fetch, row=FileRow, statement=wrong))


def test_when_every_connection_is_busy_that_is_said(tmp_path: Path) -> None:
    app = Penstock(settings=load_settings(database_url=f"sqlite:///{tmp_path}/penstock.db", pool_size=1))
    engine = app.store.engine
    assert isinstance(engine.pool, QueuePool)
    engine.pool._timeout = 0.01
    taken = [engine.connect() for _ in range(engine.pool.size())]
    with pytest.raises(StoreUnavailable) as told:
        app.jobs.list()
    assert told.value.code == "DB_POOL_BUSY"
    for one in taken:
        one.close()
    assert app.jobs.list() == []
    app.close()
