"""Photos as strangers send them: what is read of good ones, and what is said of the others."""

from __future__ import annotations

import hashlib
import os
import random
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import ExifTags, Image, ImageCms

from penstock import Permanent, Retryable
from penstock.errors import ConfigurationError
from penstock_apps.catalogs import facts, pictures
from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.colours import in_srgb
from penstock_apps.catalogs.facts import facts_of
from penstock_apps.catalogs.hash_bits import NO_HASH
from penstock_apps.catalogs.pictures import content_sha256, open_picture
from penstock_apps.catalogs.tags import load_taggers, tags_of
from penstock_apps.catalogs.thumbnails import write_thumbnails
from penstock_apps.grey_pictures import in_eight_bits

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
    photo = facts_of(path, BOUNDS)
    assert (photo["type"], photo["width"], photo["height"], photo["frames"]) == (kind, 120, 80, 1)
    assert photo["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert photo["size"] == path.stat().st_size
    assert len(photo["perceptual_hash"]) == 16


def test_a_camera_tells_when_where_and_with_what(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    scene().save(path, exif=with_exif(orientation=6))
    photo = facts_of(path, BOUNDS)
    assert (photo["width"], photo["height"]) == (80, 120), "it was held sideways"
    assert (photo["camera_make"], photo["camera_model"]) == ("Sluice", "One")
    assert photo["taken_at"] == "2024-07-14T15:30:00"
    assert (photo["latitude"], photo["longitude"]) == (48.1375, -11.575)
    words = tags_of(photo, scene(), [lambda _photo, _picture: ["mine", "mine"]])
    assert {"portrait", "under 0.1 megapixels", "2024", "2024-07", "summer", "afternoon", "One", "48°N 12°W", "blue",
            "red", "yellow", "mine"} == set(words)  # fmt: skip


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
    made = write_thumbnails(source, content_sha256(source), {60: target}, quality=90, bounds=BOUNDS)[60]
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
    made = write_thumbnails(
        source, content_sha256(source), {50: tmp_path / "s.jpg", 150: tmp_path / "m.jpg"}, quality=90, bounds=BOUNDS
    )
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
    made = write_thumbnails(source, content_sha256(source), {20: target}, quality=90, bounds=BOUNDS)[20]
    assert made.size == target.stat().st_size
    assert sorted(one.name for one in target.parent.iterdir()) == [".other-x7f.part", "abc.jpg"]


def test_two_that_write_the_same_thumbnail_leave_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "in.png", tmp_path / "abc.jpg"
    Image.new("RGB", (30, 20), "red").save(source)
    write_thumbnails(source, content_sha256(source), {20: target}, quality=90, bounds=BOUNDS)

    def gone(self: Path, _: Path) -> Path:
        self.unlink()  # the other one was done, and took it for a leftover
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "replace", gone)
    assert (
        write_thumbnails(source, content_sha256(source), {20: target}, quality=90, bounds=BOUNDS)[20].size
        == target.stat().st_size
    )
    target.unlink()
    with pytest.raises(FileNotFoundError):
        write_thumbnails(source, content_sha256(source), {20: target}, quality=90, bounds=BOUNDS)
    assert [one.name for one in tmp_path.iterdir()] == ["in.png"]


def test_what_is_transparent_is_white_and_what_is_small_stays_small(tmp_path: Path) -> None:
    source, target = tmp_path / "a.png", tmp_path / "a.jpg"
    Image.new("RGBA", (20, 10), (0, 0, 0, 0)).save(source)
    made = write_thumbnails(source, content_sha256(source), {200: target}, quality=90, bounds=BOUNDS)[200]
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


# Colours and depth ----------------------------------------------------------------------------------------------------


def drawing(seed: int) -> Image.Image:
    chance = random.Random(seed)
    picture = Image.new("L", (30, 20))
    picture.putdata([chance.randrange(256) for _ in range(600)])
    return picture.resize((300, 200), Image.Resampling.NEAREST)


def in_sixteen_bits(picture: Image.Image, mode: str = "I;16") -> Image.Image:
    order = ">H" if mode.endswith("B") else "<H"
    return Image.frombytes(mode, picture.size, b"".join(struct.pack(order, level * 257) for level in picture.tobytes()))


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_sixteen_bits_of_grey_look_as_eight_do(tmp_path: Path, name: str) -> None:
    plain, wide = tmp_path / "plain.png", tmp_path / name
    drawing(1).save(plain)
    in_sixteen_bits(drawing(1)).save(wide)
    hashes = [int(facts_of(path, BOUNDS)["perceptual_hash"], 16) for path in (plain, wide)]
    assert hashes[0] == hashes[1] != NO_HASH
    for path in (plain, wide):
        write_thumbnails(path, content_sha256(path), {64: tmp_path / f"{path.name}.jpg"}, quality=95, bounds=BOUNDS)
    with Image.open(tmp_path / "plain.png.jpg") as expected, Image.open(tmp_path / f"{name}.jpg") as thumbnail:
        assert thumbnail.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("make", "extremes"),
    [
        (lambda: in_sixteen_bits(drawing(1), "I;16B"), (0, 255)),
        (lambda: drawing(1).convert("I").point(lambda level: level * 257), (0, 255)),
        (lambda: drawing(1).convert("I").point(lambda level: level * 70_000 - 9), (0, 255)),
        (lambda: drawing(1).convert("F").point(lambda level: level / 255), (0, 255)),
        (lambda: drawing(1).convert("F").point(lambda level: level * -3.5), (0, 255)),
        (lambda: Image.new("F", (4, 4), float("nan")), None),
        (lambda: Image.new("I", (4, 4), 70_000), (0, 0)),
    ],
)
def test_grey_of_any_depth_goes_from_black_to_white(
    make: Callable[[], Image.Image], extremes: tuple[int, int] | None
) -> None:
    grey = in_eight_bits(make())
    assert grey.mode == "L"
    assert extremes is None or grey.getextrema() == extremes


def exchanged_profile() -> bytes:
    """SRGB with red and green exchanged: it stands in for any profile that is not sRGB."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    for entry in range(132, 132 + 12 * int.from_bytes(profile[128:132]), 12):
        name = bytes(profile[entry : entry + 4])
        profile[entry : entry + 4] = {b"rXYZ": b"gXYZ", b"gXYZ": b"rXYZ"}.get(name, name)
    return bytes(profile)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
def test_a_thumbnail_has_the_colours_that_the_profile_says(tmp_path: Path, mode: str) -> None:
    source, target = tmp_path / "a.png", tmp_path / "a.jpg"
    Image.new("RGB", (300, 200), (200, 30, 30)).convert(mode).save(source, icc_profile=exchanged_profile())
    write_thumbnails(source, content_sha256(source), {128: target}, quality=95, bounds=BOUNDS)
    with Image.open(target) as thumbnail:
        red, green, blue = thumbnail.getpixel((5, 5))  # type: ignore[misc]
        assert green > 180
        assert max(red, blue) < 50


@pytest.mark.parametrize("profile", [b"", b"no profile", b"\0" * 400, exchanged_profile()[:200]])
def test_a_profile_that_is_wrong_changes_nothing(profile: bytes) -> None:
    assert in_srgb(Image.new("RGB", (4, 4), (200, 30, 30)), profile).getpixel((1, 1)) == (200, 30, 30)
    assert in_srgb(Image.new("CMYK", (4, 4), (0, 255, 255, 0)), profile).getpixel((1, 1)) == (255, 0, 0)


def test_a_profile_of_another_kind_of_picture_changes_nothing() -> None:
    cmyk = Image.new("CMYK", (4, 4), (0, 255, 255, 0))
    assert in_srgb(cmyk, exchanged_profile()).getpixel((1, 1)) == (255, 0, 0)
    srgb, lab = (ImageCms.ImageCmsProfile(ImageCms.createProfile(name)) for name in ("sRGB", "LAB"))
    in_lab = ImageCms.profileToProfile(Image.new("RGB", (4, 4), (200, 30, 30)), srgb, lab, outputMode="LAB")
    assert in_lab is not None
    red, green, blue = in_srgb(in_lab, None).getpixel((1, 1))  # type: ignore[misc]
    assert (abs(red - 200) < 4, abs(green - 30) < 4, abs(blue - 30) < 4) == (True, True, True)


def test_heic_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.heic"
    path.write_bytes(b"\0\0\0\x18ftypheic" + bytes(200))
    monkeypatch.setattr(pictures, "_formats", lambda: ["JPEG", "PNG"])
    with pytest.raises(Permanent, match=r"pillow-heif.* install penstock\[catalogs\]") as told:
        facts_of(path, BOUNDS)
    assert told.value.code == "PHOTO_UNSUPPORTED"
    path.write_bytes(b"no picture at all")
    with pytest.raises(Permanent) as told:
        facts_of(path, BOUNDS)
    assert "install" not in told.value.message


def test_a_photo_that_is_written_to_while_it_is_read_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.png"
    drawing(1).save(path)
    real = content_sha256

    def changing(of: Path) -> str:
        digest = real(of)
        os.utime(of, ns=(1, 1))
        return digest

    monkeypatch.setattr(facts, "content_sha256", changing)
    with pytest.raises(Retryable) as told:
        facts_of(path, BOUNDS)
    assert told.value.code == "PHOTO_UNREADABLE"
    monkeypatch.setattr(pictures, "content_sha256", changing)
    os.utime(path, ns=(2, 2))
    with pytest.raises(Permanent) as changed:
        write_thumbnails(path, real(path), {16: tmp_path / "t.jpg"}, quality=80, bounds=BOUNDS)
    assert (changed.value.code, (tmp_path / "t.jpg").exists()) == ("PHOTO_CHANGED", False)
