"""Which SQLite it must be, and what is said of one whose checkpoints can corrupt a file."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from penstock import Penstock, load_settings
from penstock.errors import ConfigurationError
from penstock.store import database_url
from penstock.store.dialects.sqlite import dialect
from penstock.store.dialects.sqlite.engine import OLDEST, has_reset_race, require_version, reset_race

PRAGMA = "PRAGMA wal_autocheckpoint=0"


@pytest.fixture(autouse=True)
def said_nothing() -> Iterator[None]:
    """Each remark is said once in a process: begin anew."""
    database_url.say.cache_clear()
    yield
    database_url.say.cache_clear()


def test_one_that_is_too_old_is_refused() -> None:
    require_version(OLDEST)
    with pytest.raises(ConfigurationError, match=r"3\.37\.2.*3\.38\.0") as told:
        require_version((3, 37, 2))
    assert told.value.code == "SQLITE_TOO_OLD"


def test_opening_looks_at_the_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise ConfigurationError("too old", code="SQLITE_TOO_OLD")

    monkeypatch.setattr("penstock.store.dialects.sqlite.engine.require_version", refuse)
    with pytest.raises(ConfigurationError, match="too old"):
        Penstock(settings=load_settings(database_url=f"sqlite:///{path}")).system.migrate()


@pytest.mark.parametrize(
    ("version", "has_it"),
    [
        ((3, 38, 0), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 9), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
        ((4, 0, 0), False),
    ],
)
def test_which_versions_have_the_race(version: tuple[int, ...], has_it: bool) -> None:
    assert has_reset_race(version) is has_it
    assert (reset_race(version) is not None) is has_it


@pytest.fixture(params=[True, False], ids=["with the race", "without"])
def race(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A SQLite with the race, and one without."""
    version = (3, 40, 1) if request.param else (3, 51, 3)
    monkeypatch.setattr(dialect, "reset_race", lambda: reset_race(version))
    return bool(request.param)


def test_a_worker_says_it_once_at_its_start(app: Penstock, race: bool) -> None:
    with capture_logs() as lines:
        app.drain()
        app.drain()
    assert [PRAGMA in line["event"] for line in lines if "SQLite" in line["event"]] == ([True] if race else [])


def test_a_check_knows_it(app: Penstock, race: bool) -> None:
    assert [PRAGMA in remark for remark in app.system.check_database()] == ([True] if race else [])


def test_there_is_nothing_to_say_of_a_database_in_memory(race: bool) -> None:
    assert Penstock("sqlite://").system.check_database() == []


def test_the_command_prints_it(path: Path, programs: Path) -> None:
    done = subprocess.run(
        [programs / "penstock", "config", "--check"],
        env={"PENSTOCK_DATABASE_URL": f"sqlite:///{path}", "HOME": str(path.parent), "PATH": ""},
        cwd=path.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (PRAGMA in done.stdout) is has_reset_race(sqlite3.sqlite_version_info)
    assert done.stdout.startswith("all is well")
