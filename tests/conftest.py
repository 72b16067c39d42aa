"""What every test may ask for, and the block at the end that says aloud what was not run."""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from penstock.clock import Clock
    from penstock.store.engine import Store
    from penstock.testing.postgres import PostgresServer

# The same examples every time, and no more than a minute of them; HYPOTHESIS_PROFILE=thorough looks further.
_ALWAYS = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
}
settings.register_profile("default", max_examples=60, stateful_step_count=40, derandomize=True, **_ALWAYS)
settings.register_profile("thorough", max_examples=2_000, stateful_step_count=100, **_ALWAYS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# One server for each xdist worker: it need not survive a power cut, and it is small.
TEST_SERVER = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "32MB"}


def unavailable(reason: str) -> NoReturn:
    """Skip the test for want of a server; in continuous integration, where that would hide something, fail it."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(f"{reason} (CI is set: this is a failure, not a skip)", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of our own, for the whole run."""
    # Imported here: a run of the unit tests alone should not load a driver.
    from penstock.testing.postgres import PostgresUnavailable, private_postgres

    with ExitStack() as stack:
        try:
            server = stack.enter_context(private_postgres(settings=TEST_SERVER))
        except PostgresUnavailable as error:
            unavailable(str(error))
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database, dropped after the test."""
    name = f"test_{uuid.uuid4().hex}"
    postgres_server.create_database(name)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture
def open_store() -> Iterator[Callable[..., Store]]:
    """Opens stores on any URL, migrated, by a held clock unless another is given; all are closed after the test."""
    from penstock.clock import HeldClock
    from penstock.store import engine
    from penstock.store.migrating import migrate

    opened: list[Store] = []

    def opening(url: str, clock: Clock | None = None, pool_size: int = 10) -> Store:
        store = engine.open_store(url, clock=clock or HeldClock(), pool_size=pool_size)
        opened.append(store)
        migrate(store)
        return store

    yield opening
    for store in opened:
        store.close()


@pytest.fixture
def memory_store(open_store: Callable[..., Store]) -> Store:
    """SQLite in memory."""
    return open_store("sqlite://")


@pytest.fixture
def file_store(open_store: Callable[..., Store], tmp_path: Path) -> Store:
    """SQLite in a file."""
    return open_store(f"sqlite:///{tmp_path}/penstock.db")


@pytest.fixture(scope="session")
def migrated_database(postgres_server: PostgresServer) -> str:
    """The name of a migrated, empty PostgreSQL database to make copies of."""
    from penstock.store.engine import open_store
    from penstock.store.migrating import migrate

    name = f"template_{uuid.uuid4().hex}"
    postgres_server.create_database(name)
    store = open_store(postgres_server.url(name))
    migrate(store)
    store.close()
    return name


@pytest.fixture
def migrated_url(postgres_server: PostgresServer, migrated_database: str) -> Iterator[str]:
    """The URL of a fresh, migrated PostgreSQL database, dropped after the test."""
    name = f"test_{uuid.uuid4().hex}"
    postgres_server.create_database(name, template=migrated_database)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture
def postgres_store(open_store: Callable[..., Store], migrated_url: str) -> Store:
    """PostgreSQL."""
    return open_store(migrated_url)


@pytest.fixture(params=["memory", "file", "postgres"])
def store(request: pytest.FixtureRequest) -> Store:
    """Each of the databases Penstock keeps its jobs in, empty."""
    chosen: Store = request.getfixturevalue(f"{request.param}_store")
    return chosen


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped: dict[str, list[str]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", []):
        # A skip's longrepr is (file, line, reason).
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[reason.removeprefix("Skipped: ")].append(report.nodeid)
    if not skipped:
        return
    total = sum(len(tests) for tests in skipped.values())
    terminalreporter.section(f"NOT RUN: {total} skipped", sep="!", red=True, bold=True)
    for reason, tests in sorted(skipped.items()):
        terminalreporter.write_line(reason, red=True)
        for test in sorted(tests):
            terminalreporter.write_line(f"    {test}")
