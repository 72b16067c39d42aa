"""Files and folders that other accounts cannot open, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from penstock.private_files import create_private_file, make_private, make_private_folder, open_own_file


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct, autouse=True)
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_and_the_parents_it_needs(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    make_private_folder(there / "a" / "b")
    make_private_folder(there / "a" / "b")
    assert [mode(there), mode(there / "a"), mode(there / "a" / "b")] == [0o755, 0o700, 0o700]
    (there / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_private_folder(there / "file")


def test_a_file_is_made_whole_and_only_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert create_private_file(path, b"first")
    assert not create_private_file(path, b"second")
    assert (path.read_bytes(), mode(path)) == (b"first", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_others_could_open_is_made_private_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    for before, after in ((0o644, 0o600), (0o666, 0o600), (0o444, 0o400), (0o750, 0o600)):
        path.chmod(before)
        with capture_logs() as lines:
            make_private(path)
        assert mode(path) == after
        assert [(line["log_level"], line["path"]) for line in lines] == [("info", str(path))]
    with capture_logs() as lines:
        make_private(path)
        make_private(tmp_path / "none")
    assert lines == []


def test_one_that_is_not_ours_to_change_is_said_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "file"
    path.touch()
    path.chmod(0o644)
    monkeypatch.setattr(os, "chmod", refuse)
    with capture_logs() as lines:
        make_private(path)
    assert ["can open this file" in line["event"] for line in lines] == [True]


def test_a_lock_file_that_others_could_have_open_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    path.chmod(0o644)
    own = open_own_file(str(path), os.geteuid())
    again = open_own_file(str(path), os.geteuid())
    assert os.fstat(own).st_ino == os.fstat(again).st_ino != os.fstat(first).st_ino
    assert mode(path) == 0o600
    for descriptor in (first, own, again):
        os.close(descriptor)


def test_a_link_or_a_pipe_in_its_place_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError):  # noqa: PT011 - which one is the system's business
            open_own_file(str(tmp_path / name), os.geteuid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_a_file_of_another_account_is_refused_and_roots_own_is_given_to_the_databases_owner(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    os.chown(path, 65534, 65534)
    with pytest.raises(PermissionError, match="another account"):
        open_own_file(str(path), 0)
    path.unlink()
    os.close(open_own_file(str(path), 65534))
    assert path.stat().st_uid == 65534
