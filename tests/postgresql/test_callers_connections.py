"""Connections by another library than ours, or to another database, are refused in plain words."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from penstock import Penstock, load_settings
from tests.conformance.refusals import refused


@pytest.fixture
def app(migrated_url: str) -> Any:
    """A Penstock with a kind that does nothing."""
    one = Penstock(settings=load_settings(database_url=migrated_url))
    one.kind("noop")(lambda item: None)
    yield one
    one.close()


def test_an_asynchronous_session_of_our_own_driver(app: Penstock, migrated_url: str) -> None:
    async def submit() -> str:
        engine = create_async_engine(make_url(migrated_url).set(drivername="postgresql+psycopg"))
        async with AsyncSession(engine) as session:
            words = await session.run_sync(lambda sync_side: refused(app, sync_side))
        await engine.dispose()
        return words

    assert "the synchronous side of an AsyncSession (postgresql+psycopg)" in asyncio.run(submit())


def test_a_driver_connection_of_postgresql(app: Penstock, migrated_url: str) -> None:
    with psycopg.connect(migrated_url.replace("+psycopg", "")) as link:
        assert "not a psycopg.Connection" in refused(app, link)


def test_a_connection_to_sqlite_where_the_jobs_are_elsewhere(app: Penstock) -> None:
    other = create_engine("sqlite://")
    with other.connect() as connection:
        assert "the connection is to sqlite" in refused(app, connection)
    other.dispose()


def test_another_driver_of_postgresql(app: Penstock, migrated_url: str) -> None:
    engine = create_engine(make_url(migrated_url).set(drivername="postgresql+pg8000"))
    with engine.connect() as connection:
        assert "pg8000 (postgresql+pg8000)" in refused(app, connection)
    engine.dispose()
