"""Barcodes in pictures."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from penstock import NotFound, Permanent
from penstock_apps.products.barcodes import barcode_png, gtin_in, read_barcodes
from penstock_apps.products.retailer import CATALOGUE, sample_image


@pytest.mark.parametrize(
    ("text", "format_name", "gtin"),
    [
        ("4006381333931", "EAN13", "4006381333931"),
        ("40170725", "EAN8", "40170725"),
        ("036000291452", "UPCA", "0036000291452"),
        ("04252614", "UPCE", "0042100005264"),
        ("https://id.example.org/01/04006381333931/10/LOT", "QRCode", "4006381333931"),
        ("https://shop.example/p?ean=4006381333931", "QRCode", "4006381333931"),
        ("https://shop.example/about", "QRCode", None),
    ],
)
def test_what_is_drawn_is_read(text: str, format_name: str, gtin: str | None) -> None:
    [found] = read_barcodes(barcode_png(text, format_name))
    assert found.gtin == gtin
    assert format_name != "QRCode" or found.text == text


def test_a_file_is_read_as_its_bytes_are(tmp_path: Path) -> None:
    picture = tmp_path / "photo.png"
    picture.write_bytes(sample_image(3))
    assert read_barcodes(picture) == read_barcodes(sample_image(3))
    assert read_barcodes(picture)[0].gtin == CATALOGUE[3]["ean"]


def test_two_codes_in_one_picture_with_the_product_first_and_on_a_transparent_ground() -> None:
    link, code = (
        Image.open(io.BytesIO(barcode_png(text, kind)))
        for text, kind in (("https://shop.example", "QRCode"), ("4006381333931", "EAN13"))
    )
    both = Image.new("RGBA", (link.width + code.width + 80, max(link.height, code.height) + 80), (0, 0, 0, 0))
    both.paste(link.convert("RGBA"), (20, 20))
    both.paste(code.convert("RGBA"), (link.width + 60, 20))
    written = io.BytesIO()
    both.save(written, "PNG")
    assert [one.gtin for one in read_barcodes(written.getvalue())] == ["4006381333931", None]


def test_black_bars_on_nothing_are_read_on_white() -> None:
    code = Image.open(io.BytesIO(barcode_png("4006381333931")))
    bars = Image.new("RGBA", code.size, (0, 0, 0, 0))
    bars.putalpha(code.point(lambda grey: 255 - grey))
    written = io.BytesIO()
    bars.save(written, "PNG")
    assert read_barcodes(written.getvalue())[0].gtin == "4006381333931"


@pytest.mark.parametrize("content", [b"", b"not a picture", barcode_png("4006381333931")[:100]])
def test_what_is_not_a_picture_is_said(content: bytes) -> None:
    with pytest.raises(Permanent) as caught:
        read_barcodes(content)
    assert caught.value.code == "NOT_AN_IMAGE"


def test_a_picture_without_a_barcode_is_not_found() -> None:
    written = io.BytesIO()
    Image.new("L", (200, 200), "white").save(written, "PNG")
    with pytest.raises(NotFound) as caught:
        read_barcodes(written.getvalue())
    assert caught.value.code == "NO_BARCODE"


def test_a_picture_with_too_many_pixels_is_not_decoded() -> None:
    with pytest.raises(Permanent) as caught:
        read_barcodes(sample_image(), max_pixels=100)
    assert caught.value.code == "IMAGE_TOO_LARGE"


@pytest.mark.parametrize(
    ("text", "gtin"),
    [
        ("(01)04006381333931(10)A", "4006381333931"),
        ("010400638133393110A", "4006381333931"),
        ("https://id.example.org/01/04006381333932", None),
        ("https://shop.example/?GTIN=036000291452", "0036000291452"),
        ("http://[broken", None),
        ("WIFI:T:WPA;", None),
    ],
)
def test_the_gtin_in_a_text(text: str, gtin: str | None) -> None:
    assert gtin_in(text) == gtin
