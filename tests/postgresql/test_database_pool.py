"""A database that a test has used is a new one to the next test, or is not used again."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from penstock import ItemContext, Penstock
from penstock.testing.postgres import PostgresServer
from tests.database_pool import DatabasePool


@pytest.fixture
def pool(postgres_server: PostgresServer, _migrated_postgres: str) -> Iterator[DatabasePool]:
    pool = DatabasePool(postgres_server, _migrated_postgres)
    yield pool
    for name in pool._spare_names:
        postgres_server.drop_database(name)


def handle(item: ItemContext) -> int:
    return item.position


def connect(url: str) -> psycopg.Connection:
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


def number_of(url: str) -> int:
    """What a database keeps when it is renamed."""
    with connect(url) as link:
        row = link.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


def test_one_that_holds_rows_is_empty_and_has_another_name(pool: DatabasePool) -> None:
    with pool.lend() as first:
        number = number_of(first)
        forgotten = Penstock(first)
        forgotten.kind("count")(handle)
        item_id = forgotten.items.list(forgotten.submit("count").job.id)[0].id
    with pool.lend() as second:
        assert (number_of(second), second != first) == (number, True)
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            connect(first)
        app = Penstock(second)
        app.kind("count")(handle)
        assert app.jobs.list() == []
        assert app.items.list(app.submit("count").job.id)[0].id == item_id, "numbers begin again"
        app.close()
    forgotten.close()


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE left_behind (value int)",
        "ALTER TABLE penstock.jobs ADD COLUMN left_behind int",
        "CREATE FUNCTION left_behind() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA left_behind",
        "ANALYZE penstock.jobs",
        "UPDATE penstock.penstock_version SET version_num = '0001'",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$",
        "CREATE TABLE penstock.many AS SELECT repeat('x', 1000) FROM generate_series(1, 6000)",
    ],
)
def test_one_that_was_changed_is_not_used_again(pool: DatabasePool, change: str) -> None:
    with pool.lend() as first:
        number = number_of(first)
        app = Penstock(first)
        app.kind("count")(handle)
        app.submit("count")
        app.close()
        with connect(first) as link:
            link.execute(change.encode())
    with pool.lend() as second:
        assert number_of(second) != number
