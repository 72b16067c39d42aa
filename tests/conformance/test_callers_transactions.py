"""Where the caller's own things meet ours: their connection, their transaction, their constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, insert, select, text
from sqlalchemy.exc import IntegrityError

from penstock import Penstock
from penstock.errors import ConfigurationError, StoreRefused
from penstock.operations.request import Request
from penstock.operations.submit import submit
from penstock.store.tables import metadata
from penstock.testing.drive import MAX_BYTES, Workbench


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
    assert app.jobs.list() == []
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
    assert [job.unique_key for job in app.jobs.list()] == ["kept"]
    engine.dispose()


def test_a_connection_of_our_engine_is_not_refused_either(app: Penstock) -> None:
    app.in_transaction(lambda link: app.submit("mail", 1, unique_key="u", connection=link))
    with app.store.engine.connect() as connection:
        app.submit("mail", 1, unique_key="v", connection=connection)
        connection.commit()
    assert len(app.jobs.list()) == 2


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


@pytest.mark.usefixtures("rows_are_true_in_the_end")
def test_a_rollback_leaves_nothing_and_a_commit_makes_it_claimable(bench: Workbench) -> None:
    woken: list[frozenset[str] | None] = []
    bench.store.listen(woken.append)
    kind, other = bench.kinds.get("single"), metadata.tables["files"]
    row = {"id": uuid4(), "name": "mine", "size_bytes": 1, "sha256": "0", "created_at": bench.clock.held()}

    def enqueue(*, fails: bool) -> None:
        with bench.store.engine.connect() as connection, connection.begin():
            connection.execute(insert(other), row)
            with bench.store.use_connection(connection) as transaction:
                submit(transaction, kind, {"n": 1}, Request(owner="ann"), items=None, max_bytes=MAX_BYTES)
            assert woken == []
            if fails:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        enqueue(fails=True)
    assert (bench.jobs(), bench.claim("single"), woken) == ([], [], [])
    assert bench.store.read(lambda one: one.values(str, select(other.c.name))) == []
    enqueue(fails=False)
    assert woken == [frozenset({"single"})]
    assert [one.user_id for one in bench.claim("single")] == ["ann"]
