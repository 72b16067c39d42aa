"""Connections that may not carry our statements are refused in plain words, before anything is done."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from django.utils.connection import ConnectionProxy
from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from penstock import Penstock, load_settings
from penstock.errors import ConfigurationError


def refused(app: Penstock, connection: Any) -> str:
    """The words; every method that takes a connection uses the same code."""
    with pytest.raises(ConfigurationError):
        app.messages.publish("news", 1, connection=connection)
    with pytest.raises(ConfigurationError) as told:
        app.submit("noop", connection=connection)
    assert told.value.code == "CONNECTION_UNSUPPORTED"
    assert app.jobs.list() == []
    return told.value.message


@pytest.fixture
def app(migrated_url: str) -> Any:
    """Penstock on each database."""
    one = Penstock(settings=load_settings(database_url=migrated_url))
    one.kind("noop")(lambda item: None)
    yield one
    one.close()


only_sqlite = pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
only_postgresql = pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)


def test_the_users_own_engine_is_welcome(app: Penstock, migrated_url: str) -> None:
    url = make_url(migrated_url)
    engine = create_engine(url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url)
    with engine.begin() as connection:
        app.submit("noop", connection=connection)
    with Session(engine) as session, session.begin():
        app.submit("noop", connection=session.connection())
    engine.dispose()
    assert len(app.jobs.list()) == 2


def users_engine(url: str) -> Engine:
    """One of the user's own, by the driver that is ours too."""
    parsed = make_url(url)
    return create_engine(parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed)


def test_a_session_is_as_good_as_its_connection(app: Penstock, migrated_url: str) -> None:
    engine = users_engine(migrated_url)
    with Session(engine) as session, session.begin():
        kept = app.submit("noop", connection=session).job
        app.messages.publish("news", 1, connection=session)
        app.jobs.cancel(kept.id, reason="in the same transaction", connection=session)
    with Session(engine) as session:
        app.submit("noop", connection=session)
        session.rollback()
    registry = scoped_session(sessionmaker(engine))
    with registry.begin():
        app.submit_many("noop", [1, 2], connection=registry)
    registry.remove()
    engine.dispose()
    assert len(app.jobs.list()) == 3
    assert app.jobs.get(kept.id).killed_reason == "in the same transaction"
    assert app.messages.backlog().waiting == 1


def test_a_session_without_an_engine_of_its_own(app: Penstock) -> None:
    with Session() as session:
        assert "several engines, or none" in refused(app, session)


@only_sqlite
def test_both_sides_of_an_asynchronous_session(app: Penstock, migrated_url: str) -> None:
    async def submit() -> None:
        engine = create_async_engine(migrated_url.replace("sqlite:", "sqlite+aiosqlite:"))
        async with AsyncSession(engine) as session:
            assert "AsyncSession; its statements wait on an event loop" in refused(app, session)
            words = await session.run_sync(lambda sync_side: refused(app, sync_side))
            assert "the synchronous side of an AsyncSession (sqlite+aiosqlite)" in words
            assert refused(app, session.sync_session) == words, "outside of run_sync too"
        await engine.dispose()

    asyncio.run(submit())


@only_postgresql
def test_an_asynchronous_session_of_our_own_driver(app: Penstock, migrated_url: str) -> None:
    async def submit() -> str:
        engine = create_async_engine(make_url(migrated_url).set(drivername="postgresql+psycopg"))
        async with AsyncSession(engine) as session:
            words = await session.run_sync(lambda sync_side: refused(app, sync_side))
        await engine.dispose()
        return words

    assert "the synchronous side of an AsyncSession (postgresql+psycopg)" in asyncio.run(submit())


def test_a_connection_of_django(app: Penstock) -> None:
    from django.db.backends.sqlite3.base import DatabaseWrapper
    from django.db.utils import ConnectionHandler

    wrapper = DatabaseWrapper({"NAME": ":memory:"})
    assert "transaction.on_commit(lambda: app.submit(…))" in refused(app, wrapper)
    # What people import is a proxy: ``from django.db import connection``.
    handler = ConnectionHandler({"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
    assert "transaction.on_commit" in refused(app, ConnectionProxy(handler, "default"))


def test_what_is_no_connection_of_sqlalchemy(app: Penstock) -> None:
    assert "not a sqlalchemy.engine.base.Engine" in refused(app, app.store.engine)


@only_sqlite
def test_a_driver_connection_of_sqlite(app: Penstock, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as link:
        assert "not a sqlite3.Connection" in refused(app, link)


@only_postgresql
def test_a_driver_connection_of_postgresql(app: Penstock, migrated_url: str) -> None:
    with psycopg.connect(migrated_url.replace("+psycopg", "")) as link:
        assert "not a psycopg.Connection" in refused(app, link)


@only_postgresql
def test_a_connection_to_sqlite_where_the_jobs_are_elsewhere(app: Penstock) -> None:
    other = create_engine("sqlite://")
    with other.connect() as connection:
        assert "the connection is to sqlite" in refused(app, connection)
    other.dispose()


@only_sqlite
def test_a_connection_to_postgresql_where_the_jobs_are_elsewhere(app: Penstock, postgres_url: str) -> None:
    other = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"))
    with other.connect() as connection:
        assert "the connection is to postgresql" in refused(app, connection)
    other.dispose()


@only_sqlite
def test_another_sqlite_library(app: Penstock, migrated_url: str) -> None:
    """One that is built like the standard library's, as those with a newer SQLite are."""
    other = ModuleType("newer_sqlite")
    other.__dict__.update({name: getattr(sqlite3, name) for name in dir(sqlite3) if not name.startswith("__")})

    class Connection:
        """Not the standard library's."""

        def __init__(self, *args: Any, **options: Any) -> None:
            self._link = sqlite3.connect(*args, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._link, name)

    Connection.__module__ = "newer_sqlite.dbapi2"
    other.connect = Connection  # type: ignore[attr-defined]
    engine = create_engine(migrated_url, module=other)
    with engine.connect() as connection:
        words = refused(app, connection)
    engine.dispose()
    assert "one of newer_sqlite" in words
    assert "standard library's sqlite3" in words


@only_sqlite
def test_aiosqlite(app: Penstock, migrated_url: str) -> None:
    async def submit() -> str:
        engine = create_async_engine(migrated_url.replace("sqlite:", "sqlite+aiosqlite:"))
        async with engine.connect() as connection:
            words = await connection.run_sync(lambda one: refused(app, one))
            assert "AsyncConnection" in refused(app, connection)
        await engine.dispose()
        return words

    assert "aiosqlite (sqlite+aiosqlite)" in asyncio.run(submit())


@only_postgresql
def test_another_driver_of_postgresql(app: Penstock, migrated_url: str) -> None:
    engine = create_engine(make_url(migrated_url).set(drivername="postgresql+pg8000"))
    with engine.connect() as connection:
        assert "pg8000 (postgresql+pg8000)" in refused(app, connection)
    engine.dispose()
