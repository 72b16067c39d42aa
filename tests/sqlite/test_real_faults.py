"""Real faults of a real disk: full, broken, read-only. When the cause is gone, everything goes on by itself."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from penstock import Penstock
from penstock.errors import StoreUnavailable
from tests.conftest import unavailable
from tests.sqlite.conftest import seen_elsewhere

ROOT = Path(__file__).parents[2]
_ON_A_SMALL_DISK = """
set -e
mount -t tmpfs -o size=2m tmpfs "$1"
cp "$2" "$1/penstock.db"
exec "$3" -m tests.sqlite.trouble full "$1/penstock.db" "$4"
"""
_ONE_OF_FEW_RIGHTS = """
import os, sys
from penstock import Penstock, load_settings
from penstock.errors import StoreUnavailable
warm = Penstock("sqlite://")
warm.kind("noop")(lambda item: None)
warm.submit("noop")
if os.geteuid() == 0:
    os.setuid(65534)  # root may write everywhere: from here on it is nobody, who need not see the libraries either
app = Penstock(settings=load_settings(database_url=f"sqlite:///{sys.argv[1]}"))
app.kind("noop")(lambda item: None)
for line in sys.stdin:
    try:
        app.submit("noop")
        print(len(app.jobs.list()), flush=True)
    except StoreUnavailable as error:
        print(error.code, flush=True)
"""


def small_disk_command() -> list[str]:
    """A shell in a mount namespace of its own: what it mounts is gone with it."""
    command = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    probe = [*command, "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]
    if (
        shutil.which("unshare") is None
        or subprocess.run(probe, capture_output=True, timeout=30, check=False).returncode
    ):
        unavailable("no small disk: this system lets nobody mount a tmpfs of his own (unshare -Urm)")
    return command


@pytest.mark.parametrize("worker", ["worker", "alone"])
def test_a_full_disk(tmp_path: Path, migrated: Path, worker: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    arguments = ["sh", "-c", _ON_A_SMALL_DISK, "sh", str(disk), str(migrated), sys.executable, worker]
    assert run([*small_disk_command(), *arguments]) == "DATABASE_FULL"


@pytest.mark.parametrize("worker", ["worker", "alone"])
def test_an_io_error(path: Path, worker: str) -> None:
    assert run([sys.executable, "-m", "tests.sqlite.trouble", "io", str(path), worker]) == "DATABASE_IO_ERROR"


def run(command: list[str]) -> str:
    """What a program says that has to end well."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def shared(migrated: Path) -> Iterator[Path]:
    """A database in a folder that everybody may write in."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        path = Path(folder) / "penstock.db"
        shutil.copy(migrated, path)
        path.chmod(0o666)
        yield path


def test_a_file_that_is_read_only_for_a_while(shared: Path) -> None:
    shared.chmod(0o444)
    program = subprocess.Popen(
        [sys.executable, "-c", _ONE_OF_FEW_RIGHTS, str(shared)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdin is not None
    assert program.stdout is not None

    def submit() -> str:
        print("submit", file=program.stdin, flush=True)
        return str(program.stdout and program.stdout.readline().strip())

    with program:
        assert [submit() for _ in range(15)] == ["DATABASE_READ_ONLY"] * 15
        for one in shared.parent.glob(f"{shared.name}*"):  # SQLite has made the others as read-only as the first
            one.chmod(0o666)
        assert [submit(), submit()] == ["1", "2"]
        program.stdin.close()
        assert program.wait(60) == 0


def test_a_database_that_may_not_grow(app: Penstock, path: Path) -> None:
    """The statement fails, before any commit."""
    app.submit("noop")
    engine = app.store.engine

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count=1")  # SQLite makes it as many as there are

    event.listen(engine, "connect", limit)
    app.store.rest()
    engine.dispose()
    for _ in range(3):
        with pytest.raises(StoreUnavailable) as told:
            app.submit("noop", "x" * 100_000)
        assert told.value.code == "DATABASE_FULL", told.value.message
    event.remove(engine, "connect", limit)
    app.submit("noop", "x" * 100_000)
    app.drain()
    assert [job.state.value for job in app.jobs.list()] == ["succeeded"] * 2
    assert seen_elsewhere(path, "SELECT count(*) FROM jobs") == ["2"]
