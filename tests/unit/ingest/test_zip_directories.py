"""ZIP files whose directory is the attack: it is measured before anything is made of it."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.ingest import (
    ArchiveLimits,
    TableLimits,
    ZipRefused,
    detect_type,
    look_at_archive,
    look_at_file,
    open_zip,
)
from penstock.ingest.detection import FileType
from penstock.ingest.zip_files import ZipProblem

_LOCAL = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def entry(name: bytes = b"") -> bytes:
    """An entry of a directory: an empty file at the beginning of the archive."""
    numbers = (b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0)
    return struct.pack("<4s6H3L5H2L", *numbers) + name


def archive(directory: bytes, *, entries: int, size: int | None = None, comment: bytes = b"") -> bytes:
    """A ZIP file with this directory, which may claim another number of entries and another size."""
    claimed_size = len(directory) if size is None else size
    end = (b"PK\x05\x06", 0, 0, entries & 0xFFFF, entries & 0xFFFF, claimed_size, len(_LOCAL), len(comment))
    return _LOCAL + directory + struct.pack("<4s4H2LH", *end) + comment


def archive_64(directory: bytes, *, entries: int, size: int) -> bytes:
    """The same with the records for large archives, whose claims have eight bytes each."""
    start = len(_LOCAL) + len(directory)
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, entries, entries, size, len(_LOCAL))
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, start, 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return _LOCAL + directory + record + locator + end


@pytest.fixture
def made_entries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The entries that zipfile makes objects of."""
    names: list[str] = []
    plain = zipfile.ZipInfo.__init__

    def counted(info: zipfile.ZipInfo, filename: str = "", *others: object) -> None:
        names.append(filename)
        plain(info, filename, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(zipfile.ZipInfo, "__init__", counted)
    return names


@pytest.mark.parametrize("claimed", [0, 1, 3_000, 0xFFFF])
def test_entries_are_counted_before_they_become_objects_whatever_is_claimed(
    made_entries: list[str], claimed: int
) -> None:
    with pytest.raises(ZipRefused) as caught:
        open_zip(archive(entry() * 3_000, entries=claimed), 1_000)
    assert caught.value.problem is ZipProblem.TOO_MANY_MEMBERS
    assert made_entries == []


def test_large_archives_claims_are_no_better(made_entries: list[str]) -> None:
    for data in (
        archive_64(entry() * 3_000, entries=1, size=3_000 * len(entry())),
        archive_64(entry() * 3_000, entries=2**60, size=3_000 * len(entry())),
    ):
        with pytest.raises(ZipRefused):
            open_zip(data, 1_000)
    for size in (2**62, 2**40):
        with pytest.raises((zipfile.BadZipFile, ZipRefused)):
            open_zip(archive_64(entry() * 10, entries=10, size=size), 1_000)
    assert made_entries == []


def test_a_directory_of_few_and_huge_entries_is_refused_without_being_read_whole() -> None:
    class Counting(io.BytesIO):
        largest = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.largest = max(self.largest, len(data))
            return data

    file = Counting(archive(entry(b"n" * 60_000) * 100, entries=100))
    with pytest.raises(ZipRefused):
        open_zip(file, 1_000)
    assert file.largest < 1_000_000


def test_as_many_as_are_allowed_are_read_also_behind_a_long_comment() -> None:
    data = archive(b"".join(entry(b"%d" % number) for number in range(1_000)), entries=1_000, comment=b"x" * 65_000)
    assert len(open_zip(data, 1_000).namelist()) == 1_000
    with pytest.raises(ZipRefused):
        open_zip(data, 999)


def test_what_is_behind_the_directory_may_still_be_read_at_any_length(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as written:
        written.writestr("large", b"x" * 3_000_000)
    with path.open("rb") as file, open_zip(file, 1) as opened:
        assert len(opened.read("large")) == 3_000_000


def test_the_ways_in_refuse_it_with_a_code(tmp_path: Path, made_entries: list[str]) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archive(entry(b"a") * 260_000, entries=1))
    assert detect_type(path, "a.zip") is FileType.ARCHIVE
    with pytest.raises(InvalidInput) as archive_refused:
        look_at_archive(path, path.name, ArchiveLimits())
    assert archive_refused.value.code == "TOO_MANY_FILES"
    with pytest.raises(InvalidInput) as table_refused:
        look_at_file(path, "a.xlsx", TableLimits())
    assert table_refused.value.code == "NOT_A_TABLE"
    assert made_entries == []
