"""The embedded database and all that lies beside it are for our own account alone."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from penstock import Penstock
from penstock.http.service import tokens_of
from penstock.store.write_lock import WriteLock

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
_HOLD = """
import fcntl, sys
for path in sys.argv[1:]:
    try:
        file = open(path)
        fcntl.flock(file, fcntl.LOCK_EX)
        print("holds", flush=True)
    except OSError as error:
        print(type(error).__name__, flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=[0o000, 0o022], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): f"{stat.S_IMODE(path.stat().st_mode):o}"
        for path in sorted(directory.rglob("*"))
    }


@pytest.mark.usefixtures("umask")
def test_all_that_is_made_is_private(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/penstock.db")
    app._runtime._settings = app.settings.model_copy(update={"files_directory": tmp_path / "made" / "files"})
    with (tmp_path / "upload").open("w+b") as upload, capture_logs() as lines:
        app.files.keep(upload, name="empty.txt")
    assert [line for line in lines if "could open" in line["event"]] == [], "it was so from its first moment on"
    (tmp_path / "upload").unlink()
    tokens_of(app)
    found = modes(tmp_path)
    app.close()
    names = {name for name in found if name.startswith("penstock.db")}
    assert names == {f"penstock.db{ending}" for ending in ("", "-wal", "-shm", "-next", "-turn", ".secret")}
    assert {found[name] for name in names} == {"600"}
    made = {name: mode for name, mode in found.items() if name.startswith("made")}
    assert len(made) >= 4
    for name, mode in made.items():
        assert mode == ("700" if (tmp_path / name).is_dir() else "600")


def test_what_was_made_before_is_made_private_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    app = Penstock(f"sqlite:///{path}")
    app.jobs.list()
    beside = [Path(f"{path}{ending}") for ending in ("", "-wal", "-shm")]
    for file in beside:
        file.chmod(0o644)
    with capture_logs() as lines:
        again = Penstock(f"sqlite:///{path}")
        again.jobs.list()
        again.jobs.list()
    assert {mode for name, mode in modes(tmp_path).items() if not name.endswith(("-next", "-turn"))} == {"600"}
    said = [line["path"] for line in lines if "could open this file" in line["event"]]
    assert sorted(said) == sorted(map(str, beside))
    again.close()
    app.close()


def test_a_database_that_cannot_be_made_is_said_in_the_words_it_was(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="database"):
        Penstock(f"sqlite:///{tmp_path}/none/penstock.db").jobs.list()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def crowded() -> Iterator[Path]:
    """A folder that everybody may look into."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@as_root
def test_another_account_cannot_hold_our_turn(crowded: Path) -> None:
    """Whoever can open a lock file can hold it; nobody else can."""
    path = crowded / "penstock.db"
    app = Penstock(f"sqlite:///{path}")
    app.jobs.list()
    with somebody_else(f"{path}-next", f"{path}-turn", str(path), f"{path}-wal") as said:
        assert said == ["PermissionError"] * 4
    app.close()


@as_root
def test_a_lock_that_another_account_has_already_is_not_waited_for(crowded: Path) -> None:
    """From before the files were private: they are replaced, and the turn is ours at once."""
    path = crowded / "penstock.db"
    path.touch()
    locks = [Path(f"{path}-{name}") for name in ("next", "turn")]
    for lock in locks:
        lock.touch()
        lock.chmod(0o644)
    with somebody_else(*map(str, locks)) as said:
        assert said == ["holds", "holds"]
        got_it = threading.Event()

        def write() -> None:
            with WriteLock(str(path), patience=3600.0):
                got_it.set()

        threading.Thread(target=write, daemon=True).start()
        assert got_it.wait(30)


@contextmanager
def somebody_else(*paths: str) -> Iterator[list[str]]:
    """A process of another account that tries to hold files; what it says of each."""
    with subprocess.Popen(
        ["/usr/bin/env", "python3", "-S", "-c", _HOLD, *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=NOBODY,
        group=NOBODY,
        cwd="/",
        env={"PATH": os.defpath},
    ) as process:
        assert process.stdout is not None
        yield [process.stdout.readline().strip() for _ in paths]
        process.communicate()
