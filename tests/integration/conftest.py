"""A Penstock on each database, with the short intervals that tests can wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import Penstock, Settings, load_settings


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
