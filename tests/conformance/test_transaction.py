"""A transaction: its statements, its rows, and who is told when it commits."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, insert, select
from sqlalchemy.pool import QueuePool

from penstock import Penstock, load_settings
from penstock.errors import StoreUnavailable
from penstock.operations.request import Request
from penstock.operations.submit import submit
from penstock.store.engine import Store
from penstock.store.statement_cache import prepare
from penstock.store.tables import files, jobs
from penstock.store.transaction import Transaction
from penstock.testing.drive import MAX_BYTES, Workbench

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


def test_a_write_wakes_those_who_listen_once_it_is_committed(bench: Workbench) -> None:
    seen: list[tuple[frozenset[str] | None, int]] = []
    bench.store.listen(lambda kinds: seen.append((kinds, len(bench.jobs()))))
    bench.submit("single")
    assert seen == [(frozenset({"single"}), 1)]


def test_a_reader_sees_nothing_of_a_write_that_fails(bench: Workbench) -> None:
    def fails(transaction: Any) -> None:
        submit(transaction, bench.kinds.get("single"), 1, Request(), items=None, max_bytes=MAX_BYTES)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.store.write(fails)
    assert bench.jobs() == []


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


def test_when_every_connection_is_busy_that_is_said(migrated_url: str) -> None:
    app = Penstock(settings=load_settings(database_url=migrated_url, pool_size=1))
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
