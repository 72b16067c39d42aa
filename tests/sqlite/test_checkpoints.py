"""The write-ahead log is shortened in a writer's turn, under SQLite's own write lock, and at no other time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.store.dialects.sqlite import checkpoints
from penstock.store.dialects.sqlite.checkpoints import Checkpoints
from tests.sqlite.conftest import seen_elsewhere, take_write_lock_elsewhere

BIG = "x" * 60_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """A log that is long after a few jobs."""
    monkeypatch.setattr(checkpoints, "LOG_BYTES", 40 * 4096)
    return 40 * 4096


def log_size(path: Path) -> int:
    """How long the log's file is."""
    return path.with_name(f"{path.name}-wal").stat().st_size


def submit_big(app: Penstock) -> None:
    """About twenty pages of the log."""
    app.submit("noop", BIG)


def test_the_log_stays_short_under_steady_writes(app: Penstock, path: Path, small: int) -> None:
    longest = 0
    for _ in range(60):
        submit_big(app)
        longest = max(longest, log_size(path))
    assert small <= longest < 2 * small
    assert seen_elsewhere(path, "SELECT count(*) FROM jobs") == ["60"]


def test_a_reader_holds_it_up_only_as_long_as_he_reads(app: Penstock, path: Path, small: int) -> None:
    submit_big(app)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchall()
        for _ in range(20):
            submit_big(app)
        assert log_size(path) > 4 * small
        assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (1,)
    for _ in range(10):
        submit_big(app)
    assert log_size(path) < 2 * small
    assert seen_elsewhere(path, "SELECT count(*) FROM jobs") == ["31"]


def test_an_unfinished_one_is_not_tried_at_every_commit(
    app: Penstock, path: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_AGAIN_SECONDS", 3600.0)
    tried = count_calls(monkeypatch, checkpoints, "_checkpoint")
    submit_big(app)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchall()
        for _ in range(20):
            submit_big(app)
    assert 2 <= len(tried) <= log_size(path) // small


def count_calls(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[tuple[Any, ...]]:
    """The arguments of each call of a function, which is called nonetheless."""
    calls = []
    really: Callable[..., Any] = getattr(module, name)

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return really(*arguments)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_nobody_else_can_write_while_it_runs(
    app: Penstock, path: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    really_connect = sqlite3.connect

    class Watched(sqlite3.Connection):
        def execute(self, statement: str, *parameters: Any) -> Any:
            if "wal_checkpoint" in statement:
                answers.append(take_write_lock_elsewhere(path))
            return super().execute(statement, *parameters)

    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: really_connect(*args, **{"factory": Watched} | options)
    )
    for _ in range(4):
        submit_big(app)
    assert answers == ["database is locked"] * len(answers)
    assert answers


def test_a_writer_who_is_not_ours_is_not_waited_for(app: Penstock, path: Path, small: int) -> None:
    submit_big(app)
    submit_big(app)
    submit_big(app)
    link = path.with_name(f"{path.name}-wal")
    before = link.stat().st_size
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        own = Checkpoints()
        with closing(sqlite3.connect(path)) as writer:
            own.run_if_due(str(path), writer)
    assert link.stat().st_size == before


def test_no_connection_of_ours_checkpoints_by_itself(app: Penstock, path: Path, small: int) -> None:
    app.submit("noop")
    with app.store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA wal_autocheckpoint").scalar() == 0
    for _ in range(80):
        with app.store.engine.begin() as connection:  # not in a writer's turn
            connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS large (value TEXT)")
            connection.exec_driver_sql("INSERT INTO large VALUES (?)", (BIG,))
    assert log_size(path) > 1000 * 4096, "more than SQLite's own default would leave"
    submit_big(app)
    submit_big(app)
    assert log_size(path) < 2 * small


def test_an_error_of_it_is_no_error_of_the_transaction(
    app: Penstock, path: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(checkpoints, "_checkpoint", fail)
        for _ in range(8):
            submit_big(app)
    assert len(app.jobs.list()) == 8
    assert log_size(path) > 2 * small
    for _ in range(4):
        submit_big(app)
    assert log_size(path) < 2 * small
