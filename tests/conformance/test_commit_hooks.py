"""What a caller's own transaction has to tell is told once it has committed: by Core and by an ORM session."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from penstock import Penstock
from tests.conformance.databases import needs

Told = list[tuple[frozenset[str] | None, int]]
Commit = Callable[[Engine, Callable[[Connection], object]], None]


@pytest.fixture
def app(migrated_url: str) -> Iterator[Penstock]:
    app = Penstock(migrated_url)
    app.kind("mail")(lambda item: 1)
    yield app
    app.close()


@pytest.fixture
def engine(migrated_url: str) -> Iterator[Engine]:
    engine = create_engine(migrated_url)
    yield engine
    engine.dispose()


@pytest.fixture
def told(app: Penstock) -> Told:
    """What the workers of this process are told, and how many jobs others can see at that moment."""
    heard: Told = []
    app.store.listen(lambda notices: heard.append((notices, len(app.jobs.list()))))
    return heard


def by_core(engine: Engine, work: Callable[[Connection], object]) -> None:
    with engine.begin() as connection:
        work(connection)


def by_core_that_keeps_its_connection(engine: Engine, work: Callable[[Connection], object]) -> None:
    with engine.connect() as connection:
        work(connection)
        connection.commit()
        connection.execute(text("SELECT 1"))


def by_core_with_options(engine: Engine, work: Callable[[Connection], object]) -> None:
    by_core(engine.execution_options(logging_token="orders"), work)


def by_a_session(engine: Engine, work: Callable[[Connection], object]) -> None:
    with Session(engine) as session:
        work(session.connection())
        session.commit()


def by_a_session_that_begins(engine: Engine, work: Callable[[Connection], object]) -> None:
    with Session(engine) as session, session.begin():
        session.execute(text("SELECT 1"))
        with session.begin_nested():
            work(session.connection())


WAYS = [by_core, by_core_that_keeps_its_connection, by_core_with_options, by_a_session, by_a_session_that_begins]


@pytest.mark.parametrize("commit", WAYS)
def test_who_is_told_finds_the_job(app: Penstock, engine: Engine, told: Told, commit: Commit) -> None:
    def two(link: Connection) -> None:
        app.submit("mail", 1, connection=link)
        app.submit("mail", 2, connection=link)
        assert told == [], "told of what nobody can see yet"

    for round_ in (1, 2):
        commit(engine, two)
        assert told == [(frozenset({"mail"}), 2 * round_)] * 2, "told at the commit, and each once"
        told.clear()


def test_of_ones_own_engine_too(app: Penstock, told: Told) -> None:
    app.in_transaction(lambda link: app.submit("mail", 1, connection=link))
    assert told == [(frozenset({"mail"}), 1)]


@contextmanager
def taken_back(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection
        connection.rollback()


@contextmanager
def taken_back_and_used_again(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection
        connection.rollback()
        connection.execute(text("SELECT 1"))
        connection.commit()


@contextmanager
def left_open(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection


@contextmanager
def session_taken_back(engine: Engine) -> Iterator[Connection]:
    with Session(engine) as session:
        yield session.connection()
        session.rollback()


@pytest.mark.parametrize("begin", [taken_back, taken_back_and_used_again, left_open, session_taken_back])
def test_what_is_taken_back_is_not_told(app: Penstock, engine: Engine, told: Told, begin: Any) -> None:
    with structlog.testing.capture_logs() as lines:
        with begin(engine) as connection:
            app.submit("mail", 1, connection=connection)
            app.jobs.cancel(app.submit("mail", 2, connection=connection).job.id, connection=connection)
        by_core(engine, lambda link: link.execute(text("SELECT 1")))
    assert told == []
    assert [line for line in lines if "cancel" in line["event"]] == []
    assert app.jobs.list() == []


@needs("defers_constraints")
def test_a_commit_that_fails_is_not_told(app: Penstock, engine: Engine, told: Told) -> None:
    """A constraint that is looked at only when the transaction commits, which takes everything back."""
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)"))
    with structlog.testing.capture_logs() as lines, engine.connect() as connection:
        job = app.submit("mail", 1, connection=connection).job
        app.jobs.cancel(job.id, connection=connection)
        connection.execute(text("INSERT INTO orders VALUES (1), (1)"))
        with pytest.raises(DBAPIError):
            connection.commit()
    assert told == []
    assert [line for line in lines if "cancel" in line["event"]] == []
    assert app.jobs.list() == []


def test_lines_of_the_log_come_after_the_commit(app: Penstock, engine: Engine) -> None:
    seen: list[int] = []
    event.listen(engine, "commit", lambda _: seen.append(len(lines)))
    job = app.submit("mail", 1).job
    with structlog.testing.capture_logs() as lines:
        by_core(engine, lambda link: app.jobs.cancel(job.id, connection=link))
    told_of = [line for line in lines if line["event"].startswith("cancel")]
    assert (len(told_of), seen) == (1, [0])


def test_nothing_of_a_connection_is_kept_alive(app: Penstock, engine: Engine) -> None:
    connection = engine.connect()
    app.submit("mail", 1, connection=connection)
    gone = weakref.ref(connection.connection)
    gc.disable()
    try:
        connection.close()
        del connection
        assert gone() is None, "only the collector of cycles would let it go"
    finally:
        gc.enable()
