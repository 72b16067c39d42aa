"""One explorer for each database, for all tests of a run: its scenes are put back, never made anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing.postgres import PostgresServer
from tests.interleavings.databases import postgresql_database, sqlite_database
from tests.interleavings.explorer import Explorer


@pytest.fixture(scope="session")
def _sqlite_explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    with sqlite_database(tmp_path_factory.mktemp("interleaved")) as database:
        explorer = Explorer(database)
        with explorer.watching():
            yield explorer


@pytest.fixture(scope="session")
def _postgresql_explorer(postgres_server: PostgresServer) -> Iterator[Explorer]:
    with postgresql_database(postgres_server, "interleaved") as database:
        explorer = Explorer(database)
        with explorer.watching():
            yield explorer


@pytest.fixture(params=["sqlite", "postgresql"])
def explorer(request: pytest.FixtureRequest) -> Explorer:
    """On each database."""
    chosen: Explorer = request.getfixturevalue(f"_{request.param}_explorer")
    chosen.forget()
    return chosen


@pytest.fixture
def on_postgresql(_postgresql_explorer: Explorer) -> Explorer:
    """Where statements of two transactions can meet."""
    _postgresql_explorer.forget()
    return _postgresql_explorer
