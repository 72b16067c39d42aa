"""Whatever statement fails: once the cause is gone the store works again by itself, and nothing is half done."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

import psycopg.errors
import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.pool import QueuePool

from penstock import Penstock, PenstockError, StoreUnavailable, load_settings
from penstock.testing.fault_points import fail_at
from penstock.testing.invariants import violations

OPERATIONS: dict[str, Callable[[Penstock, UUID], object]] = {
    "submit": lambda app, _: app.submit("noop", {"a": 1}),
    "submit with items": lambda app, _: app.submit("noop", items=[1, 2, 3], unique_key="one"),
    "cancel": lambda app, queued: app.cancel(queued),
    "publish": lambda app, _: app.publish("news", "all is well"),
    "list": lambda app, _: app.jobs(),
    "get": lambda app, queued: app.get(queued),
    "sweep": lambda app, _: app.sweep(),
}


@pytest.fixture
def app(migrated_url: str) -> Iterator[Penstock]:
    """Penstock on each database, with a few jobs, and connections in use."""
    one = Penstock(settings=load_settings(database_url=migrated_url))
    one.kind("noop")(lambda item: None)
    for _ in range(3):
        one.submit("noop")
    one.drain()
    yield one
    one.close()


def driver_error(app: Penstock, code: int = sqlite3.SQLITE_FULL) -> Exception:
    """What the driver raises for a full disk, or for what the code says."""
    if app.store.dialect.name == "postgresql":
        return psycopg.errors.DiskFull("could not extend file: No space left on device")
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = code
    return error


def outbox_of(app: Penstock) -> str:
    """The name of a table of ours, as others have to write it."""
    return "outbox" if app.database_file else "penstock.outbox"


def is_well(app: Penstock) -> None:
    """Everything works, no connection is lost, and nobody keeps a lock."""
    accepted = app.submit("noop").job.id
    app.drain()
    assert app.get(accepted).state.value == "succeeded"
    assert violations(app.store) == []
    app.store.rest()
    assert isinstance(app.store.engine.pool, QueuePool)
    assert app.store.engine.pool.checkedout() == 0
    other = create_engine(app.store.engine.url, connect_args={"timeout": 0} if app.database_file else {})
    with other.begin() as connection:
        connection.execute(text(f"DELETE FROM {outbox_of(app)}"))
    other.dispose()


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_statement_may_fail_and_each_commit(app: Penstock, name: str) -> None:
    for number in count():
        queued = app.submit("noop").job.id
        before = app.counts()
        told = failure_at(app, number, partial(OPERATIONS[name], app, queued))
        if told is None:
            break
        assert told.code == "DATABASE_FULL"
        assert app.counts() == before, "nothing is half done"
    assert number >= 1
    is_well(app)


def failure_at(app: Penstock, number: int, operation: Callable[[], object]) -> StoreUnavailable | None:
    """What is said when this statement fails and all after it; None where there are not so many."""
    try:
        with fail_at(app.store, number, driver_error(app)):
            operation()
    except StoreUnavailable as error:
        return error
    return None


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN])
def test_each_fault_of_sqlite_has_its_code(app: Penstock, code: int) -> None:
    expected = {
        sqlite3.SQLITE_IOERR_WRITE: "DATABASE_IO_ERROR",
        sqlite3.SQLITE_READONLY: "DATABASE_READ_ONLY",
        sqlite3.SQLITE_CANTOPEN: "DB_CONN_REFUSED",
    }
    with fail_at(app.store, 0, driver_error(app, code)), pytest.raises(StoreUnavailable) as told:
        app.submit("noop")
    assert told.value.code == expected[code]
    is_well(app)


@pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
def test_a_commit_that_the_server_refuses(app: Penstock) -> None:
    engine = app.store.engine
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"
        )
        connection.exec_driver_sql(
            "CREATE CONSTRAINT TRIGGER refusing AFTER INSERT ON penstock.outbox DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    for _ in range(3):
        with pytest.raises(StoreUnavailable) as told:
            app.publish("news", "all is well")
        assert told.value.code == "DATABASE_FULL"
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER refusing ON penstock.outbox")
    app.publish("news", "all is well")
    is_well(app)


def test_an_interrupt_leaves_no_transaction_behind(app: Penstock) -> None:
    def interrupted(_transaction: Any) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            app.store.write(interrupted)
        with pytest.raises(KeyboardInterrupt):
            app.store.read(interrupted, single_statement=True)
    is_well(app)


def test_what_is_refused_by_us_costs_no_connection(app: Penstock) -> None:
    opened: list[int] = []
    [job, *_] = app.jobs()
    for number in range(6):
        if number == 1:  # the first may need one of its own
            event.listen(app.store.engine, "connect", lambda *_: opened.append(1))
        with pytest.raises(PenstockError):
            app.cancel(job.id)
    assert not opened
