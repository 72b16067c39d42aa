"""Pictures of strangers are opened within bounds, upright and on white paper, or refused with a code."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from penstock import Permanent
from penstock_apps.recipes.photos import pictures
from penstock_apps.recipes.photos.pictures import open_upright, preview_of
from penstock_apps.recipes.photos.text_lines import PictureFile
from tests.applications.recipes.photos import bomb, encoded


def opened(tmp_path: Path, content: bytes, *, max_pixels: int = 1_000_000) -> Image.Image:
    path = tmp_path / "picture"
    path.write_bytes(content)
    return open_upright(PictureFile(path, max_pixels))


def half(size: tuple[int, int] = (40, 20)) -> Image.Image:
    """Red on the left, blue on the right."""
    picture = Image.new("RGB", size, "red")
    picture.paste("blue", (size[0] // 2, 0, *size))
    return picture


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "HEIF"])
def test_these_types_are_read(tmp_path: Path, file_format: str) -> None:
    import pillow_heif

    pillow_heif.register_heif_opener()
    assert opened(tmp_path, encoded(half((64, 32)), file_format)).size == (64, 32)


def test_a_picture_is_turned_as_its_camera_says_and_no_larger_than_it_has_to_be(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right by a quarter
    upright = opened(tmp_path, encoded(half((3000, 300)), "JPEG", exif=exif))
    assert upright.size == (200, 2000)
    red, _, blue = upright.getpixel((100, 100))  # type: ignore[misc]
    assert red > 200 > blue, "what was on the left is above"


def test_what_is_transparent_is_paper(tmp_path: Path) -> None:
    assert opened(tmp_path, encoded(Image.new("RGBA", (4, 4)))).getpixel((0, 0)) == (255, 255, 255)


def test_a_preview_has_none_of_what_the_camera_wrote(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010F] = "A camera"
    exif.get_ifd(0x8825)[1] = "N"
    shown = Image.open(io.BytesIO(preview_of(opened(tmp_path, encoded(half((1800, 500)), "JPEG", exif=exif)))))
    assert (shown.format, shown.size, dict(shown.getexif())) == ("JPEG", (1600, 444), {})


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "PICTURE_EMPTY"),
        (bomb(), "PICTURE_TOO_MANY_PIXELS"),
        (encoded(Image.new("L", (1001, 1000))), "PICTURE_TOO_MANY_PIXELS"),
        (encoded(half(), "JPEG")[:200], "PICTURE_BROKEN"),
        (encoded(half((400, 400)).rotate(7), "JPEG")[:-900], "PICTURE_BROKEN"),
        (encoded(half()).replace(b"IDAT", b"IDOT"), "PICTURE_BROKEN"),
        (b"%PDF-1.7", "PICTURE_UNSUPPORTED"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "PICTURE_UNSUPPORTED"),
    ],
    ids=["empty", "bomb", "a pixel too many", "head alone", "cut", "damaged", "PDF", "SVG"],
)
def test_what_cannot_be_read_has_a_code(tmp_path: Path, content: bytes, code: str) -> None:
    with pytest.raises(Permanent) as refused:
        opened(tmp_path, content)
    assert refused.value.code == code


def test_heic_says_which_extra_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_formats", lambda: ["JPEG", "PNG"])
    with pytest.raises(Permanent, match=r"HEIC needs pillow-heif.*install penstock\[recipe-photos\]") as refused:
        opened(tmp_path, b"\x00\x00\x00\x18ftypheic" + bytes(20))
    assert refused.value.code == "PICTURE_UNSUPPORTED"
    with pytest.raises(Permanent, match="send one of JPEG, PNG"):
        opened(tmp_path, b"words")
