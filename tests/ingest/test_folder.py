"""Files that wait in a folder."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from penstock.errors import InvalidInput, NotFound, Permanent, Retryable
from penstock.ingest.sources.contract import Waiting
from penstock.ingest.sources.folder import Folder
from tests.conftest import unavailable

NOW = 2_000_000_000.0


def put(path: Path, content: bytes = b"a;b\n1;2\n", *, age: float = 60) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (NOW - age, NOW - age))
    return path


def folder(path: Path, **options: float) -> Folder:
    return Folder(path, now=lambda: NOW, **options)  # type: ignore[arg-type]


def names(source: Folder) -> list[str]:
    return [one.name for one in source.waiting()]


def only(source: Folder) -> Waiting:
    (one,) = source.waiting()
    return one


def test_files_come_oldest_first_from_all_subfolders(tmp_path: Path) -> None:
    put(tmp_path / "young.csv", age=10)
    put(tmp_path / "a" / "b" / "old.csv", age=30)
    put(tmp_path / "middle.csv", age=20)
    assert names(folder(tmp_path)) == ["old.csv", "middle.csv", "young.csv"]


def test_a_file_is_described(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", b"12345")
    status = path.stat()
    assert only(folder(tmp_path)) == Waiting(
        "x.csv", f"folder:{path}", 5, f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"
    )


@pytest.mark.parametrize("name", [".hidden", "x.csv.part", "x.TMP", "x.crdownload", "x.filepart", "x.csv~"])
def test_names_that_say_not_yet_are_left_alone(tmp_path: Path, name: str) -> None:
    put(tmp_path / name)
    put(tmp_path / ".folder" / "inside.csv")
    put(tmp_path / "whole.csv")
    assert names(folder(tmp_path)) == ["whole.csv"]


def test_a_file_waits_until_it_has_settled(tmp_path: Path) -> None:
    put(tmp_path / "x.csv", age=1.5)
    assert names(folder(tmp_path, settle_seconds=2)) == []
    assert names(folder(tmp_path, settle_seconds=1)) == ["x.csv"]


def test_a_file_that_is_open_for_writing_is_left_alone(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = put(tmp_path / "x.csv")
    with path.open("rb") as probe:
        try:
            fcntl.fcntl(probe, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except (OSError, AttributeError):
            unavailable("leases on files do not work in this folder")
    with path.open("ab"):
        assert names(folder(tmp_path)) == []
    assert names(folder(tmp_path)) == ["x.csv"]


def test_only_regular_files_inside_are_found(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    put(inbox / "x.csv")
    secret = put(tmp_path / "secret.csv")
    (inbox / "link.csv").symlink_to(secret)
    (inbox / "away").symlink_to(tmp_path)
    (inbox / "twice.csv").symlink_to(inbox / "x.csv")
    os.mkfifo(inbox / "pipe")
    assert names(folder(inbox)) == ["x.csv"]


def test_a_name_that_is_not_utf8_can_be_kept_as_json_and_read(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9 50%.csv"
    put(Path(os.fsdecode(path)), b"latin")
    one = only(folder(tmp_path))
    assert one.name == "caf\ufffd 50%.csv"
    assert one.address == f"folder:{tmp_path}/caf%E9 50%25.csv"
    assert orjson.dumps([one.name, one.address])
    with folder(tmp_path).open(one) as content:
        assert content.read() == b"latin"


def test_one_file_is_a_source_too(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", b"content")
    put(tmp_path / "y.csv")
    source = folder(path)
    with source.open(only(source)) as content:
        assert content.read() == b"content"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist") as caught:
        names(folder(tmp_path / "nothing"))
    assert caught.value.code == "SOURCE_MISSING"


def test_more_entries_than_the_bound(tmp_path: Path) -> None:
    for number in range(4):
        put(tmp_path / f"{number}.csv")
    assert len(names(folder(tmp_path, max_entries=4))) == 4
    with pytest.raises(InvalidInput, match="more than 3 entries") as caught:
        names(folder(tmp_path, max_entries=3))
    assert caught.value.code == "SOURCE_TOO_LARGE"


def test_folders_deeper_than_the_bound(tmp_path: Path) -> None:
    eight = tmp_path.joinpath(*"1234567")
    put(eight / "x.csv")
    assert names(folder(tmp_path)) == ["x.csv"]
    put(eight / "8" / "y.csv")
    with pytest.raises(InvalidInput, match="8 deep") as caught:
        names(folder(tmp_path))
    assert caught.value.code == "SOURCE_TOO_LARGE"


def test_a_large_file_is_read_in_pieces(tmp_path: Path) -> None:
    put(tmp_path / "x.bin", bytes(20 << 20))
    with folder(tmp_path).open(only(folder(tmp_path))) as content:
        sizes = [len(piece) for piece in iter(lambda: content.read(1 << 16), b"")]
    assert sum(sizes) == 20 << 20
    assert max(sizes) <= 1 << 16


def test_a_file_that_went_away(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv")
    one = only(folder(tmp_path))
    path.unlink()
    with pytest.raises(NotFound) as caught, folder(tmp_path).open(one):
        pass
    assert caught.value.code == "SOURCE_FILE_GONE"


def test_a_file_that_changed_before_it_was_read(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", b"first")
    one = only(folder(tmp_path))
    put(path, b"other", age=59)
    with pytest.raises(Retryable) as caught, folder(tmp_path).open(one):
        pass
    assert caught.value.code == "SOURCE_FILE_CHANGED"


@pytest.mark.parametrize("how", ["grown", "replaced", "rewritten"])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, how: str) -> None:
    path = put(tmp_path / "x.csv", b"12345678")
    one = only(folder(tmp_path))
    with pytest.raises(Retryable) as caught, folder(tmp_path).open(one) as content:  # noqa: PT012
        assert content.read(4) == b"1234"
        if how == "grown":
            path.write_bytes(b"1234567890")
        elif how == "replaced":
            put(tmp_path / "new.csv", b"abcdefgh").rename(path)
        else:
            put(path, b"abcdefgh", age=50)
        assert content.read(4)
        content.read(4)
    assert caught.value.code == "SOURCE_FILE_CHANGED"


def test_a_reader_that_stops_early_hears_of_a_change_as_well(tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", b"12345678")
    one = only(folder(tmp_path))
    with pytest.raises(Retryable, match="changed"), folder(tmp_path).open(one) as content:  # noqa: PT012
        content.read(2)
        put(path, b"abcdefgh", age=50)


def test_a_link_put_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    path = put(tmp_path / "inbox" / "x.csv")
    one = only(folder(tmp_path / "inbox"))
    put(tmp_path / "inbox" / "y.csv")
    path.unlink()
    path.symlink_to(tmp_path / "inbox" / "y.csv")
    with pytest.raises(Retryable) as caught, folder(tmp_path / "inbox").open(one):
        pass
    assert caught.value.code == "SOURCE_FILE_CHANGED"


def test_a_file_of_another_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "other" / "x.csv")
    one = only(folder(tmp_path / "other"))
    (tmp_path / "inbox").mkdir()
    with pytest.raises(InvalidInput) as caught, folder(tmp_path / "inbox").open(one):
        pass
    assert caught.value.code == "SOURCE_ADDRESS_WRONG"


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever runs the tests may read everything, perhaps; so the system's answer is played.
    def refuse(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(Permanent, match="Permission denied") as caught:
        names(folder(tmp_path))
    assert caught.value.code == "SOURCE_REFUSED"


def test_an_error_of_the_reader_is_not_ours_to_rename(tmp_path: Path) -> None:
    put(tmp_path / "x.csv")
    with pytest.raises(OSError, match="disk full"), folder(tmp_path).open(only(folder(tmp_path))):
        raise OSError("disk full")
