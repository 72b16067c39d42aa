"""Each fault of SQLite has a code of its own, and is over when its cause is."""

from __future__ import annotations

import sqlite3

import pytest

from penstock import Penstock
from penstock.errors import StoreUnavailable
from penstock.testing.fault_points import fail_at
from tests.conformance.databases import database_named
from tests.conformance.health import is_well


@pytest.fixture
def app(app: Penstock) -> Penstock:
    """With a few jobs, and connections in use."""
    for _ in range(3):
        app.submit("noop")
    app.drain()
    return app


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN])
def test_each_fault_of_sqlite_has_its_code(app: Penstock, code: int) -> None:
    expected = {
        sqlite3.SQLITE_IOERR_WRITE: "DATABASE_IO_ERROR",
        sqlite3.SQLITE_READONLY: "DATABASE_READ_ONLY",
        sqlite3.SQLITE_CANTOPEN: "DB_CONN_REFUSED",
    }
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    with fail_at(app.store, 0, error), pytest.raises(StoreUnavailable) as told:
        app.submit("noop")
    assert told.value.code == expected[code]
    is_well(app, database_named("sqlite"))
