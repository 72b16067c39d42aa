"""Photos as strangers send them: what is read of good ones, and what is said of the others."""

from __future__ import annotations

import hashlib
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import ExifTags, Image

from penstock import Permanent, Retryable
from penstock.errors import ConfigurationError
from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.facts import facts_of
from penstock_apps.catalogs.pictures import open_picture
from penstock_apps.catalogs.tags import load_taggers, tags_of
from penstock_apps.catalogs.thumbnails import write_thumbnails

BOUNDS = Bounds(max_bytes=5_000_000, max_pixels=1_000_000)


def scene(width: int = 120, height: int = 80) -> Image.Image:
    """A picture with something in each corner."""
    made = Image.new("RGB", (width, height), (40, 90, 200))
    made.paste((200, 30, 30), (0, 0, width // 2, height // 2))
    made.paste((240, 220, 40), (width // 2, height // 2, width, height))
    return made


def with_exif(**given: object) -> Image.Exif:
    exif = Image.Exif()
    exif[ExifTags.Base.Make] = "Sluice"
    exif[ExifTags.Base.Model] = "One\x00"
    exif[ExifTags.Base.Orientation] = given.get("orientation", 1)
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = "2024:07:14 15:30:00"
    gps = exif.get_ifd(ExifTags.IFD.GPSInfo)
    gps[ExifTags.GPS.GPSLatitude], gps[ExifTags.GPS.GPSLatitudeRef] = (48.0, 8.0, 15.0), "N"
    gps[ExifTags.GPS.GPSLongitude], gps[ExifTags.GPS.GPSLongitudeRef] = (11.0, 34.0, 30.0), "W"
    return exif


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.jpg", "JPEG"), ("a.png", "PNG"), ("a.webp", "WEBP"), ("a.gif", "GIF"), ("a.tif", "TIFF"), ("a.heic", "HEIF")],
)
def test_every_type_gives_its_facts(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    if kind == "HEIF":
        pillow_heif = pytest.importorskip("pillow_heif")
        pillow_heif.register_heif_opener()
    scene().save(path)
    facts = facts_of(path, BOUNDS)
    assert (facts["type"], facts["width"], facts["height"], facts["frames"]) == (kind, 120, 80, 1)
    assert facts["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert facts["size"] == path.stat().st_size
    assert len(facts["perceptual_hash"]) == 16


def test_a_camera_tells_when_where_and_with_what(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    scene().save(path, exif=with_exif(orientation=6))
    facts = facts_of(path, BOUNDS)
    assert (facts["width"], facts["height"]) == (80, 120), "it was held sideways"
    assert (facts["camera_make"], facts["camera_model"]) == ("Sluice", "One")
    assert facts["taken_at"] == "2024-07-14T15:30:00"
    assert (facts["latitude"], facts["longitude"]) == (48.1375, -11.575)
    words = tags_of(facts, scene(), [lambda _facts, _picture: ["mine", "mine"]])
    assert {"portrait", "1 megapixels", "2024", "2024-07", "summer", "afternoon", "One", "48°N 12°W", "blue", "red",
            "yellow", "mine"} == set(words)  # fmt: skip


@pytest.mark.parametrize(
    ("orientation", "corner"),
    [(1, (0, 0)), (2, (1, 0)), (3, (1, 1)), (4, (0, 1)), (5, (0, 0)), (6, (1, 0)), (7, (1, 1)), (8, (0, 1))],
)
def test_a_thumbnail_is_upright(tmp_path: Path, orientation: int, corner: tuple[int, int]) -> None:
    """The red corner is top left in the file; where it must come to lie follows from the orientation."""
    source, target = tmp_path / "a.jpg", tmp_path / "made" / "a.jpg"
    picture = Image.new("RGB", (120, 80), (40, 90, 200))
    picture.paste((255, 0, 0), (0, 0, 60, 40))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    picture.save(source, exif=exif, quality=95)
    made = write_thumbnails(source, {60: target}, quality=90, bounds=BOUNDS)[60]
    expected = (60, 40) if orientation < 5 else (40, 60)
    with Image.open(target) as thumbnail:
        assert thumbnail.size == expected == (made.width, made.height)
        assert not thumbnail.getexif().get(ExifTags.Base.Orientation)
        column, row = (one * (length - 1) for one, length in zip(corner, thumbnail.size, strict=True))
        red, _, blue = thumbnail.getpixel((int(column), int(row)))  # type: ignore[misc]
        assert red > 150 > blue
    assert [one.name for one in target.parent.iterdir()] == ["a.jpg"]


def test_several_sizes_are_made_of_one_reading(tmp_path: Path) -> None:
    source = tmp_path / "a.jpg"
    Image.new("RGB", (300, 200), "green").save(source)
    made = write_thumbnails(source, {50: tmp_path / "s.jpg", 150: tmp_path / "m.jpg"}, quality=90, bounds=BOUNDS)
    assert {edge: (one.width, one.height) for edge, one in made.items()} == {50: (50, 33), 150: (150, 100)}
    for name, size in (("s.jpg", (50, 33)), ("m.jpg", (150, 100))):
        with Image.open(tmp_path / name) as thumbnail:
            assert thumbnail.size == size


def test_what_a_killed_process_left_of_a_thumbnail_goes_with_the_next_one(tmp_path: Path) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out" / "abc.jpg"
    Image.new("RGB", (30, 20), "red").save(source)
    target.parent.mkdir()
    (target.parent / ".abc-x7f.part").write_bytes(b"half")
    (target.parent / ".other-x7f.part").write_bytes(b"somebody writes this now")
    made = write_thumbnails(source, {20: target}, quality=90, bounds=BOUNDS)[20]
    assert made.size == target.stat().st_size
    assert sorted(one.name for one in target.parent.iterdir()) == [".other-x7f.part", "abc.jpg"]


def test_two_that_write_the_same_thumbnail_leave_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "in.png", tmp_path / "abc.jpg"
    Image.new("RGB", (30, 20), "red").save(source)
    write_thumbnails(source, {20: target}, quality=90, bounds=BOUNDS)

    def gone(self: Path, _: Path) -> Path:
        self.unlink()  # the other one was done, and took it for a leftover
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "replace", gone)
    assert write_thumbnails(source, {20: target}, quality=90, bounds=BOUNDS)[20].size == target.stat().st_size
    target.unlink()
    with pytest.raises(FileNotFoundError):
        write_thumbnails(source, {20: target}, quality=90, bounds=BOUNDS)
    assert [one.name for one in tmp_path.iterdir()] == ["in.png"]


def test_what_is_transparent_is_white_and_what_is_small_stays_small(tmp_path: Path) -> None:
    source, target = tmp_path / "a.png", tmp_path / "a.jpg"
    Image.new("RGBA", (20, 10), (0, 0, 0, 0)).save(source)
    made = write_thumbnails(source, {200: target}, quality=90, bounds=BOUNDS)[200]
    assert (made.width, made.height) == (20, 10)
    with Image.open(target) as thumbnail:
        assert thumbnail.getpixel((5, 5)) == (255, 255, 255)


def png_header(width: int, height: int) -> bytes:
    """The head of a PNG that says it is that large."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return b"\x89PNG\r\n\x1a\n" + body + struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))


def jpeg(tmp_path: Path) -> bytes:
    path = tmp_path / "whole.jpg"
    scene(400, 300).save(path, quality=95)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda _: b"", "PHOTO_EMPTY"),
        (lambda _: b"x" * 5_000_001, "PHOTO_TOO_LARGE"),
        (lambda _: b"this is no picture at all", "PHOTO_UNSUPPORTED"),
        (lambda _: b"%PDF-1.7 something", "PHOTO_UNSUPPORTED"),
        (lambda _: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "PHOTO_UNSUPPORTED"),
        (lambda _: png_header(2_000, 2_000), "PHOTO_TOO_MANY_PIXELS"),
        (lambda _: png_header(60_000, 60_000), "PHOTO_TOO_MANY_PIXELS"),
        (lambda directory: jpeg(directory)[:2_000], "PHOTO_TRUNCATED"),
        (lambda _: png_header(100, 100), "PHOTO_CORRUPT"),
    ],
)
def test_what_is_wrong_has_a_code(tmp_path: Path, make: object, code: str) -> None:
    path = tmp_path / "bad.jpg"
    path.write_bytes(make(tmp_path))  # type: ignore[operator]
    with pytest.raises(Permanent) as told:
        facts_of(path, BOUNDS)
    assert told.value.code in {code, "PHOTO_TRUNCATED" if code == "PHOTO_CORRUPT" else code}


def test_a_file_that_is_gone_and_one_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Permanent) as gone:
        facts_of(tmp_path / "gone.jpg", BOUNDS)
    assert gone.value.code == "PHOTO_MISSING"
    path = tmp_path / "a.jpg"
    scene().save(path)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Image, "open", refused)
    with pytest.raises(Retryable) as refusal, open_picture(path, BOUNDS):
        pass
    assert refusal.value.code == "PHOTO_UNREADABLE"


def test_bytes_that_are_cut_or_changed_anywhere_never_escape_as_something_else(tmp_path: Path) -> None:
    whole = jpeg(tmp_path)
    path = tmp_path / "bad.jpg"
    read = 0
    for number in range(60):
        at = number * len(whole) // 60
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            path.write_bytes(data)
            with suppress(Permanent, Retryable):
                facts_of(path, BOUNDS)
                read += 1
    assert 0 < read < 120, "some changes are seen, some are not; none came out as anything else"


@pytest.mark.parametrize("name", ["no.such.module:f", "json:no_such", "json", ":f", "json:__name__"])
def test_a_tagger_that_cannot_be_had_is_said_at_once(name: str) -> None:
    with pytest.raises(ConfigurationError, match="PENSTOCK_TAGGERS"):
        load_taggers((name,))
