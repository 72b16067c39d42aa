"""A Penstock on each database, with the short intervals that tests can wait for."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import Penstock, Settings, load_settings
from penstock.runners.processes import ProcessPool
from tests.integration.pool_calls import PoolFactory


@pytest.fixture
def quick_settings(migrated_url: str, tmp_path: Path) -> Settings:
    """Short intervals; a poll so rare that only a wake-up can explain quick work."""
    return load_settings(
        database_url=migrated_url,
        files_directory=tmp_path / "files",
        heartbeat_seconds=0.05,
        sweep_seconds=0.1,
        poll_seconds=300.0,
        lock_floor_ms=2_000,
        stop_grace_seconds=10.0,
    )


@pytest.fixture
def open_app(quick_settings: Settings) -> Iterator[Callable[[], Penstock]]:
    """Makes Penstocks on the same database, as other processes would have; all are closed at the end."""
    opened: list[Penstock] = []

    def make() -> Penstock:
        app = Penstock(settings=quick_settings)
        opened.append(app)
        return app

    yield make
    for app in opened:
        app.close()


@pytest.fixture
def app(open_app: Callable[[], Penstock]) -> Penstock:
    """A Penstock on an up-to-date database."""
    return open_app()


@pytest.fixture
def quick(_migrated_sqlite: Path, tmp_path: Path) -> Settings:
    """A SQLite file, and a watchdog that looks often."""
    (tmp_path / "penstock.db").write_bytes(_migrated_sqlite.read_bytes())
    return load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db",
        files_directory=tmp_path / "files",
        heartbeat_seconds=0.05,
        lock_floor_ms=60_000,
        timeout_grace_seconds=0.3,
        stop_grace_seconds=0.0,
    )


@pytest.fixture
def small(quick: Settings) -> Iterator[Penstock]:
    app = Penstock(settings=quick)
    yield app
    app.close()


@pytest.fixture
def patient(quick: Settings) -> Iterator[Penstock]:
    """The same with the usual grace: where nothing hangs, nothing may be given up on a busy machine either."""
    app = Penstock(settings=quick.model_copy(update={"timeout_grace_seconds": 10.0}))
    yield app
    app.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Handlers that hang wait for this, so that nothing of them is left after the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def make_pool() -> Iterator[PoolFactory]:
    with contextlib.ExitStack() as stack:

        def make(size: int = 1, **options: float) -> ProcessPool:
            pool = ProcessPool(size, **options)  # type: ignore[arg-type]
            stack.callback(pool.close, 0.0)
            return pool

        yield make


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path
