"""A SQLite file that exists already, and what another process sees of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Penstock, load_settings

_BEGIN = """
import sqlite3, sys
link = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    link.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
else:
    print("got it")
"""
_LOOK = """
import sqlite3, sys
link = sqlite3.connect(sys.argv[1])
print(link.execute("PRAGMA integrity_check").fetchone()[0])
print(*[row[0] for row in link.execute(sys.argv[2])], sep="\\n")
"""


@pytest.fixture
def migrated(_migrated_sqlite: Path) -> Path:
    """A database with all its tables, to copy from."""
    return _migrated_sqlite


@pytest.fixture
def path(migrated: Path, tmp_path: Path) -> Path:
    """A copy of it, which nobody has open."""
    copy = tmp_path / "shop.db"
    shutil.copy(migrated, copy)
    return copy


@pytest.fixture
def app(path: Path) -> Iterator[Penstock]:
    """Penstock on that file, with a kind that does nothing."""
    one = Penstock(settings=load_settings(database_url=f"sqlite:///{path}"))
    one.kind("noop")(lambda item: None)
    yield one
    one.close()


def take_write_lock_elsewhere(path: Path) -> str:
    """What another process is answered that wants to write at once."""
    return _in_another_process(_BEGIN, str(path)).strip()


def seen_elsewhere(path: Path, question: str) -> list[str]:
    """What another process reads from the file, which must be whole."""
    integrity, *rows = _in_another_process(_LOOK, str(path), question).splitlines()
    assert integrity == "ok"
    return rows


def _in_another_process(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout
