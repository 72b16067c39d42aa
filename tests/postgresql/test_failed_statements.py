"""A commit that the server refuses, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock import Penstock, load_settings
from penstock.errors import StoreUnavailable
from tests.conformance.databases import database_named
from tests.conformance.health import is_well


@pytest.fixture
def app(migrated_url: str) -> Iterator[Penstock]:
    """Penstock with a few jobs, and connections in use."""
    one = Penstock(settings=load_settings(database_url=migrated_url))
    one.kind("noop")(lambda item: None)
    for _ in range(3):
        one.submit("noop")
    one.drain()
    yield one
    one.close()


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
            app.messages.publish("news", "all is well")
        assert told.value.code == "DATABASE_FULL"
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER refusing ON penstock.outbox")
    app.messages.publish("news", "all is well")
    is_well(app, database_named("postgresql"))
