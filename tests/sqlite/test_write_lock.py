"""Writers of one SQLite file queue: nobody writes twice while another waits, and nobody waits for the dead."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from penstock import Penstock
from penstock.store.write_lock import WriteLock

PATIENCE = 30.0
_HOLDING = """
import sys
from penstock.store.write_lock import WriteLock
with WriteLock(sys.argv[1], patience=30.0):
    print("holding", flush=True)
    sys.stdin.read()
"""


def test_who_has_just_written_lets_the_one_who_waits_go_first(file: str) -> None:
    busy, patient = WriteLock(file, patience=PATIENCE), WriteLock(file, patience=PATIENCE)
    order = []
    with busy:
        waiting = _in_a_thread(patient, lambda: order.append("patient"))
        _until(lambda: _is_locked(f"{file}-next"))
    with busy:
        order.append("busy")
    waiting.join(PATIENCE)
    assert order == ["patient", "busy"]


def test_a_turn_ends_with_its_process(file: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDING, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holding\n"
    turns = WriteLock(file, patience=PATIENCE)
    done = threading.Event()
    waiting = _in_a_thread(turns, done.set)
    _until(lambda: _is_locked(f"{file}-next"))
    assert not done.is_set()
    holder.kill()
    holder.communicate()
    waiting.join(PATIENCE)
    assert done.is_set()
    assert not _is_locked(f"{file}-turn")


def test_one_who_does_not_let_go_is_not_waited_for_for_ever(file: str) -> None:
    with WriteLock(file, patience=PATIENCE), WriteLock(file, patience=0.0):
        assert _is_locked(f"{file}-turn")
        assert not _is_locked(f"{file}-next")


def test_who_has_the_turn_may_enter_again_and_keeps_it_until_the_end(file: str) -> None:
    turns = WriteLock(file, patience=PATIENCE)
    with turns:
        with turns:
            pass
        assert _is_locked(f"{file}-turn")
    assert not _is_locked(f"{file}-turn")


def test_an_error_gives_the_turn_back(file: str) -> None:
    with pytest.raises(RuntimeError, match="in the middle"), WriteLock(file, patience=PATIENCE):
        raise RuntimeError("in the middle")
    assert not _is_locked(f"{file}-turn")


def test_closed_turns_can_be_used_again(file: str) -> None:
    turns = WriteLock(file, patience=PATIENCE)
    with turns:
        pass
    turns.close()
    with turns:
        assert _is_locked(f"{file}-turn")


def test_where_no_lock_can_be_had_sqlite_decides_alone(tmp_path: Path) -> None:
    with WriteLock(str(tmp_path / "no such folder" / "jobs.db"), patience=PATIENCE):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:jobs?mode=memory&uri=true"])
def test_a_database_without_a_file_has_no_turns(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with WriteLock.of(make_url(url), patience=PATIENCE):
        assert list(tmp_path.iterdir()) == []


def test_a_link_to_the_file_has_the_same_turns(tmp_path: Path) -> None:
    there = tmp_path / "jobs.db"
    there.touch()
    (tmp_path / "link.db").symlink_to(there)
    with WriteLock.of(make_url(f"sqlite:///{tmp_path}/link.db"), patience=PATIENCE):
        assert _is_locked(f"{there}-turn")


def test_a_transaction_is_written_in_its_writers_turn(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db")
    app.system.migrate()
    during = app.store.write(lambda _: _is_locked(f"{tmp_path}/jobs.db-turn"))
    assert during
    assert not _is_locked(f"{tmp_path}/jobs.db-turn")
    app.close()


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "jobs.db")


def _in_a_thread(turns: WriteLock, action: Callable[[], object]) -> threading.Thread:
    def take() -> None:
        with turns:
            action()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread


def _is_locked(path: str) -> bool:
    looking = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(looking, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(looking)
    return False


def _until(happened: Callable[[], bool]) -> None:
    """Look again and again, but not for ever; each look takes a lock away for a moment at most."""
    for _ in range(1_000_000):
        if happened():
            return
    raise AssertionError("it never happened")
