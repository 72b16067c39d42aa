"""Connections by another library than ours, or to another database, are refused in plain words."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from penstock import Penstock
from tests.conformance.refusals import refused


@pytest.fixture
def url(path: Path) -> str:
    """The address of the file."""
    return f"sqlite:///{path}"


def test_both_sides_of_an_asynchronous_session(app: Penstock, url: str) -> None:
    async def submit() -> None:
        engine = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"))
        async with AsyncSession(engine) as session:
            assert "AsyncSession; its statements wait on an event loop" in refused(app, session)
            words = await session.run_sync(lambda sync_side: refused(app, sync_side))
            assert "the synchronous side of an AsyncSession (sqlite+aiosqlite)" in words
            assert refused(app, session.sync_session) == words, "outside of run_sync too"
        await engine.dispose()

    asyncio.run(submit())


def test_a_driver_connection_of_sqlite(app: Penstock, path: Path) -> None:
    with closing(sqlite3.connect(path)) as link:
        assert "not a sqlite3.Connection" in refused(app, link)


def test_a_connection_to_postgresql_where_the_jobs_are_elsewhere(app: Penstock, postgres_url: str) -> None:
    other = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"))
    with other.connect() as connection:
        assert "the connection is to postgresql" in refused(app, connection)
    other.dispose()


def test_another_sqlite_library(app: Penstock, url: str) -> None:
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
    engine = create_engine(url, module=other)
    with engine.connect() as connection:
        words = refused(app, connection)
    engine.dispose()
    assert "one of newer_sqlite" in words
    assert "standard library's sqlite3" in words


def test_aiosqlite(app: Penstock, url: str) -> None:
    async def submit() -> str:
        engine = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"))
        async with engine.connect() as connection:
            words = await connection.run_sync(lambda one: refused(app, one))
            assert "AsyncConnection" in refused(app, connection)
        await engine.dispose()
        return words

    assert "aiosqlite (sqlite+aiosqlite)" in asyncio.run(submit())
