"""A database file that is deleted or replaced beneath us is noticed at the next call, and said."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.errors import StoreUnavailable
from tests.sqlite.conftest import seen_elsewhere

COUNT = "SELECT count(*) FROM jobs"
CALLS: dict[str, Callable[[Penstock], object]] = {
    "submit": lambda app: app.submit("noop"),
    "jobs": lambda app: app.jobs.list(),
    "counts": lambda app: app.system.count_jobs(),
}


def code_of(app: Penstock, name: str) -> str:
    """With which code a call is refused."""
    with pytest.raises(StoreUnavailable) as told:
        CALLS[name](app)
    return told.value.code


def all_of(path: Path) -> list[Path]:
    """The database and the files SQLite keeps beside it."""
    return [path, *(one for end in ("-wal", "-shm") if (one := path.with_name(path.name + end)).exists())]


@pytest.fixture
def used(app: Penstock) -> Penstock:
    """A store with connections of each sort, and two jobs."""
    app.submit("noop")
    app.submit("noop")
    app.jobs.list()
    app.system.count_jobs()
    return app


@pytest.mark.parametrize("name", CALLS)
def test_a_deleted_file_is_an_error_and_is_not_made_anew(used: Penstock, path: Path, name: str) -> None:
    for one in all_of(path):
        one.unlink()
    for _ in range(15):
        assert code_of(used, name) == "DATABASE_FILE_GONE"
    assert not path.exists()


@pytest.mark.parametrize("name", CALLS)
def test_a_file_that_is_put_back_is_used_again(used: Penstock, path: Path, tmp_path: Path, name: str) -> None:
    away = tmp_path / "away"
    away.mkdir()
    for one in all_of(path):
        one.rename(away / one.name)
    assert code_of(used, name) == "DATABASE_FILE_GONE"
    for one in away.iterdir():
        one.rename(path.parent / one.name)
    CALLS[name](used)
    used.submit("noop")
    assert int(seen_elsewhere(path, COUNT)[0]) >= 3


@pytest.mark.parametrize("name", CALLS)
def test_a_file_in_its_place_is_said_once_and_then_used(used: Penstock, path: Path, migrated: Path, name: str) -> None:
    for one in all_of(path):
        one.unlink()
    shutil.copy(migrated, path)
    assert code_of(used, name) == "DATABASE_FILE_REPLACED"
    assert used.jobs.list() == []
    assert used.system.count_jobs() == {}
    accepted = used.submit("noop").job.id
    used.drain()
    assert used.jobs.get(accepted).state.value == "succeeded"
    assert seen_elsewhere(path, COUNT) == ["1"]


def test_the_log_of_the_old_file_is_never_written_into_the_new_one(used: Penstock, path: Path, migrated: Path) -> None:
    path.unlink()
    shutil.copy(migrated, path)
    for name in (*CALLS, *CALLS):
        assert code_of(used, name) == "DATABASE_FILE_REPLACED"
    log = path.with_name(f"{path.name}-wal")
    log.unlink()
    assert code_of(used, "submit") == "DATABASE_FILE_REPLACED"
    used.submit("noop")
    assert seen_elsewhere(path, COUNT) == ["1"]


def test_an_empty_file_is_not_taken_for_the_database(used: Penstock, path: Path) -> None:
    for one in all_of(path):
        one.unlink()
    path.touch()
    for _ in range(3):
        assert code_of(used, "submit") == "DATABASE_FILE_REPLACED"
    assert path.stat().st_size == 0


def test_a_worker_goes_on_with_the_file_in_its_place(used: Penstock, path: Path, migrated: Path) -> None:
    with used.working() as worker:
        assert worker.listening.wait(30)
        away = path.with_name("restored.db")
        shutil.copy(migrated, away)
        for one in all_of(path):
            one.unlink()
        away.rename(path)
        while True:  # the worker may have noticed it already
            try:
                accepted = used.submit("noop").job.id
                break
            except StoreUnavailable:
                continue
        assert used.jobs.wait(accepted, timeout=60).state.value == "succeeded"
