"""Where the caller's own things meet ours: their connection, their constraints, their generator."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError, OperationalError

from penstock import Penstock
from penstock.errors import ConfigurationError, StoreRefused
from penstock.operations.submit_many import submit_many
from penstock.testing.invariants import violations


@pytest.fixture
def app(migrated_url: str) -> Iterator[Penstock]:
    app = Penstock(migrated_url)
    app.kind("mail")(lambda item: 1)
    yield app
    app.close()


def test_a_connection_that_commits_by_itself_is_refused(app: Penstock, migrated_url: str) -> None:
    engine = create_engine(migrated_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(ConfigurationError) as refused:
        app.submit("mail", 1, unique_key="u", connection=connection)
    assert refused.value.code == "CONNECTION_AUTOCOMMIT"
    assert app.jobs() == []
    engine.dispose()


@pytest.mark.parametrize("begun", [False, True])
def test_a_connection_of_ones_own_engine_with_a_transaction_is_not(
    app: Penstock, migrated_url: str, begun: bool
) -> None:
    engine = create_engine(migrated_url)
    with engine.connect() as connection:
        if begun:
            connection.execute(text("SELECT 1"))
        app.submit("mail", 1, unique_key="kept", connection=connection)
        connection.commit()
        app.submit("mail", 1, unique_key="lost", connection=connection)
        connection.rollback()
    assert [job.unique_key for job in app.jobs()] == ["kept"]
    engine.dispose()


def test_a_connection_of_our_engine_is_not_refused_either(app: Penstock) -> None:
    app.in_transaction(lambda link: app.submit("mail", 1, unique_key="u", connection=link))
    with app.store.engine.connect() as connection:
        app.submit("mail", 1, unique_key="v", connection=connection)
        connection.commit()
    assert len(app.jobs()) == 2


def test_the_callers_own_unique_key_is_the_callers(app: Penstock) -> None:
    calls: list[str] = []
    app.in_transaction(lambda link: link.execute(text("CREATE TABLE orders (id integer PRIMARY KEY)")))
    app.in_transaction(lambda link: link.execute(text("INSERT INTO orders VALUES (7)")))

    def order(link: Any) -> None:
        calls.append("card charged")
        link.execute(text("INSERT INTO orders VALUES (7)"))

    with pytest.raises((StoreRefused, IntegrityError)):
        app.in_transaction(order)
    assert calls == ["card charged"]


def test_a_generator_that_is_needed_twice_loses_nothing(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is lost, or a deadlock met, after some of it has been read: the transaction is run again."""
    tries = []

    def interrupted(transaction: Any, *arguments: Any, **named: Any) -> Any:
        ids = submit_many(transaction, *arguments, **named)
        tries.append(len(ids))
        if len(tries) == 1:
            if transaction.dialect.name == "postgresql":
                transaction.connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise OperationalError("INSERT", {}, busy)
        return ids

    monkeypatch.setattr("penstock.changing.submit_many", interrupted)
    ids = app.submit_many("mail", ({"n": n} for n in range(100)))
    assert (tries, len(ids), len(app.jobs(limit=200))) == ([100, 100], 100, 100)
    assert violations(app.store) == []
