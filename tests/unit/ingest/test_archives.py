"""Archives of pictures: nothing is lost, nothing is believed, and one bad member is one bad picture."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from penstock.errors import InvalidInput, Permanent
from penstock.ingest.archives import ArchiveLimits, look_at_archive, pictures

LIMITS = ArchiveLimits()
BAD = {"FILE_BROKEN", "FILE_TOO_LARGE", "COMPRESSION_SUSPICIOUS", "NOT_AN_IMAGE", "ENCRYPTED"}


def image(kind: str = "PNG", colour: str = "red") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(buffer, kind)
    return buffer.getvalue()


PNG = image()


def packed(path: Path, **members: bytes) -> Path:
    return packed_as(path, list(members.items()))


def packed_as(path: Path, members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def codes(path: Path, limits: ArchiveLimits = LIMITS) -> list[str | None]:
    return [code for _, _, _, code in pictures(path, "photos.zip", limits)]


def test_a_picture_that_begins_before_the_archive_is_one_bad_picture(tmp_path: Path) -> None:
    """Where the directory says that it begins further on than it does, its members begin before the file."""
    path = packed(tmp_path / "a.zip", **{"a.png": PNG, "b.png": PNG})
    content = path.read_bytes()
    end = content.rindex(b"PK\x05\x06")
    offset = int.from_bytes(content[end + 16 : end + 20], "little")
    path.write_bytes(content[: end + 16] + (offset + 50).to_bytes(4, "little") + content[end + 20 :])
    [(_, _, problem, code), (_, _, _, second)] = pictures(path, "photos.zip", LIMITS)
    assert (code, second) == ("FILE_BROKEN", "FILE_BROKEN")
    assert "begins before its own beginning" in (problem or "")


def patched(path: Path, offset: int, value: bytes) -> Path:
    """Overwrite bytes of the first member's entry in the central directory."""
    content = path.read_bytes()
    entry = content.index(b"PK\x01\x02") + offset
    path.write_bytes(content[:entry] + value + content[entry + len(value) :])
    return path


def test_pictures_come_in_order_with_their_bytes(tmp_path: Path) -> None:
    members = [("b/two.jpg", image("JPEG")), ("a.png", PNG), ("c.webp", image("WEBP")), ("d.bmp", image("BMP"))]
    path = packed_as(tmp_path / "a.zip", members)
    assert look_at_archive(path, "photos.zip", LIMITS) == 4
    read = list(pictures(path, "photos.zip", LIMITS))
    assert [(picture.name, content) for picture, content, _, _ in read] == members
    assert [picture.number for picture, _, _, _ in read] == [1, 2, 3, 4]
    assert [picture.size for picture, _, _, _ in read] == [len(content) for _, content in members]
    assert {(problem, code) for _, _, problem, code in read} == {(None, None)}
    assert list(pictures(path, "photos.zip", LIMITS, after=2)) == read[2:]
    assert list(pictures(path, "photos.zip", LIMITS, after=4)) == []


def test_folders_and_hidden_files_are_skipped_and_not_numbered(tmp_path: Path) -> None:
    names = ["folder/", "__MACOSX/._a.png", ".DS_Store", "folder/.hidden.png", ".git/x.png", "folder/seen.png"]
    path = packed_as(tmp_path / "a.zip", [(name, b"" if name.endswith("/") else PNG) for name in names])
    assert look_at_archive(path, "photos.zip", LIMITS) == 1
    assert [(picture.number, picture.name) for picture, _, _, _ in pictures(path, "photos.zip", LIMITS)] == [
        (1, "folder/seen.png")
    ]


def test_what_is_no_image_is_bad_and_keeps_its_number(tmp_path: Path) -> None:
    path = packed_as(tmp_path / "a.zip", [("a.png", PNG), ("b.png", b"<html>"), ("empty.png", b""), ("c.png", PNG)])
    assert look_at_archive(path, "photos.zip", LIMITS) == 4
    assert codes(path) == [None, "NOT_AN_IMAGE", "NOT_AN_IMAGE", None]


def test_a_name_is_text_to_show_cut_and_never_a_path(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    path = packed_as(inside / "a.zip", [("../../escaped.png", PNG), ("n" * 3000 + ".png", PNG)])
    names = [picture.name for picture, content, _, _ in pictures(path, "photos.zip", LIMITS) if content == PNG]
    assert names == ["../../escaped.png", "n" * 1024]
    assert [found.name for found in tmp_path.rglob("*")] == ["inside", "a.zip"]


def test_an_encrypted_member_is_bad(tmp_path: Path) -> None:
    path = patched(packed(tmp_path / "a.zip", a=PNG, b=PNG), 8, b"\x01\x00")
    assert codes(path) == ["ENCRYPTED", None]


def test_a_member_with_a_wrong_checksum_is_bad_and_the_next_one_is_not(tmp_path: Path) -> None:
    path = patched(packed(tmp_path / "a.zip", a=PNG, b=PNG), 16, b"\0\0\0\0")
    assert codes(path) == ["FILE_BROKEN", None]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_cannot_be_unpacked_in_steps_are_bad(tmp_path: Path, method: int) -> None:
    assert codes(packed_as(tmp_path / "a.zip", [("a.png", PNG)], method)) == ["FILE_BROKEN"]


def test_a_picture_beyond_its_bound_is_bad(tmp_path: Path) -> None:
    path = packed_as(tmp_path / "a.zip", [("large.png", PNG + b"x"), ("fits.png", PNG)])
    assert codes(path, ArchiveLimits(member_bytes=len(PNG))) == ["FILE_TOO_LARGE", None]


def test_a_picture_that_unpacks_too_far_is_bad(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", a=PNG + bytes(2 * 1024**2), b=PNG)
    assert codes(path) == ["COMPRESSION_SUSPICIOUS", None]
    assert codes(path, ArchiveLimits(ratio=5000)) == [None, None]


def test_too_many_files(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", a=PNG, b=PNG, c=PNG)
    with pytest.raises(InvalidInput) as refused:
        look_at_archive(path, "photos.zip", ArchiveLimits(members=2))
    assert refused.value.code == "TOO_MANY_FILES"


def test_too_much_in_all_is_refused_when_declared_and_when_read(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", a=PNG + b"1" * 1000, b=PNG + b"2" * 1000)
    limits = ArchiveLimits(decompressed_bytes=len(PNG) + 1500)
    with pytest.raises(InvalidInput) as refused:
        look_at_archive(path, "photos.zip", limits)
    assert refused.value.code == "DECOMPRESSED_TOO_LARGE"
    read = pictures(path, "photos.zip", limits)
    assert next(read)[3] is None
    with pytest.raises(Permanent) as stopped:
        next(read)
    assert stopped.value.code == "DECOMPRESSED_TOO_LARGE"


@pytest.mark.parametrize("names", [[], ["folder/", ".DS_Store"]])
def test_an_archive_without_files_is_empty(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        look_at_archive(packed_as(tmp_path / "a.zip", [(name, b"") for name in names]), "photos.zip", LIMITS)
    assert refused.value.code == "ARCHIVE_EMPTY"


@pytest.mark.parametrize("declared", [2**30, 40 * 1024**2])
def test_a_bomb_of_a_gigabyte_is_bad_whatever_it_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: int
) -> None:
    """A gigabyte of zeros behind a picture's first bytes, which declares the truth, or less than its bound."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(PNG) + packer.flush(zlib.Z_FULL_FLUSH)
    megabyte = packer.compress(bytes(1024**2)) + packer.flush(zlib.Z_FULL_FLUSH)
    path = packed_as(tmp_path / "a.zip", [("bomb.png", first + megabyte * 1024 + packer.flush())], zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[8:10] = content[entry + 10 : entry + 12] = b"\x08\x00"
    content[22:26] = content[entry + 24 : entry + 28] = declared.to_bytes(4, "little")
    path.write_bytes(content)

    unpacked = 0
    plain = zipfile.ZipExtFile.read

    def counted(member: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        nonlocal unpacked
        chunk = plain(member, n)
        unpacked += len(chunk)
        return chunk

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    assert codes(path, ArchiveLimits(ratio=10)) == ["FILE_TOO_LARGE" if declared == 2**30 else "COMPRESSION_SUSPICIOUS"]
    assert unpacked == 0
    # Without the ratio's help the declared size is as far as it goes, and the checksum tells.
    assert codes(path, ArchiveLimits(ratio=10**9))[0] in {"FILE_TOO_LARGE", "FILE_BROKEN"}
    assert unpacked <= LIMITS.member_bytes


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("plain") / "a.zip"
    return packed_as(path, [("a.png", PNG), ("b.jpg", image("JPEG")), ("c.txt", b"no image")]).read_bytes()


def outcome(path: Path) -> set[str | None]:
    try:
        count = look_at_archive(path, "photos.zip", LIMITS)
        found = codes(path)
    except (InvalidInput, Permanent) as error:
        return {error.code}
    assert len(found) == count
    return set(found)


@given(cut=st.floats(0, 0.999))
def test_a_truncated_archive_is_refused(tmp_path_factory: pytest.TempPathFactory, plain: bytes, cut: float) -> None:
    path = tmp_path_factory.getbasetemp() / "truncated.zip"
    path.write_bytes(plain[: int(len(plain) * cut)])
    assert outcome(path) == {"NOT_AN_ARCHIVE"}


@given(flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(1, 255)), min_size=1, max_size=8))
def test_flipped_bits_give_pictures_or_known_codes(
    tmp_path_factory: pytest.TempPathFactory, plain: bytes, flips: list[tuple[float, int]]
) -> None:
    content = bytearray(plain)
    for position, mask in flips:
        content[int(len(plain) * position)] ^= mask
    path = tmp_path_factory.getbasetemp() / "flipped.zip"
    path.write_bytes(content)
    assert outcome(path) <= BAD | {None, "NOT_AN_ARCHIVE", "ARCHIVE_EMPTY", "DECOMPRESSED_TOO_LARGE"}
