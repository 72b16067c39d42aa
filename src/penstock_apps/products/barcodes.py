"""Barcodes in photographs: EAN, UPC, GS1 and QR codes, and the GTIN that they hold."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, unquote, urlsplit

from penstock import NotFound, Permanent
from penstock_apps.grey_pictures import in_eight_bits
from penstock_apps.products.products import canonical_gtin

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 50_000_000
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP")
_BARCODE_FORMATS = ("EANUPC", "QRCode", "MicroQRCode", "DataMatrix", "Code128", "ITF14", "DataBar")
_GS1_LINK = re.compile(r"/(?:01|gtin)/([0-9]{8,14})(?=/|$)")
_GS1_ELEMENT = re.compile(r"(?:\(01\)|^01)([0-9]{14})")
_QUERY_NAMES = ("gtin", "ean", "upc", "01", "barcode")


@dataclass(frozen=True, slots=True)
class Barcode:
    """What one barcode says, and the GTIN in it if there is one."""

    text: str
    format: str
    gtin: str | None = None


def read_barcodes(source: bytes | Path, max_pixels: int = MAX_PIXELS) -> list[Barcode]:
    """Every barcode in a picture, those with a GTIN first; ``NotFound`` when there is none."""
    import zxingcpp

    formats = zxingcpp.BarcodeFormats([getattr(zxingcpp.BarcodeFormat, name) for name in _BARCODE_FORMATS])
    results = zxingcpp.read_barcodes(_grey(source, max_pixels), formats=formats)
    barcodes = {
        (result.text, result.format.name): Barcode(result.text, result.format.name, gtin_in(result.text))
        for result in results
        if result.text
    }
    if not barcodes:
        raise NotFound("no barcode can be seen in the picture: take it closer, sharper and straight", code="NO_BARCODE")
    return sorted(barcodes.values(), key=lambda barcode: barcode.gtin is None)


def barcode_png(text: str, format_name: str = "EAN13", scale: int = 4) -> bytes:
    """A picture of a barcode, for samples and tests."""
    import zxingcpp
    from PIL import Image

    barcode = zxingcpp.create_barcode(text, getattr(zxingcpp.BarcodeFormat, format_name))
    # The image offers the buffer protocol, so numpy is not needed; the stubs do not know that.
    image = cast("bytes", barcode.to_image(scale=scale, add_quiet_zones=True))
    pixels = memoryview(image)
    assert pixels.shape is not None
    height, width = pixels.shape[:2]
    png = io.BytesIO()
    Image.frombytes("L", (width, height), pixels.tobytes()).save(png, "PNG")
    return png.getvalue()


def gtin_in(text: str) -> str | None:
    """The GTIN a text holds: plain digits, a GS1 element string, or a web address of GS1 Digital Link.

    >>> gtin_in("https://id.example.org/01/04006381333931/10/A1")
    '4006381333931'
    """
    text = text.strip()
    if text.lower().startswith(("http://", "https://")):
        try:
            parts = urlsplit(text)
        except ValueError:
            return None
        if link := _GS1_LINK.search(unquote(parts.path)):
            return canonical_gtin(link[1])
        query = {name.lower(): values for name, values in parse_qs(parts.query).items()}
        values = (query[name][0] for name in _QUERY_NAMES if name in query)
        return next((gtin for value in values if (gtin := canonical_gtin(value))), None)
    if plain := canonical_gtin(text):
        return plain
    element = _GS1_ELEMENT.search(text)
    return canonical_gtin(element[1]) if element else None


def _grey(source: bytes | Path, max_pixels: int) -> Image.Image:
    """The picture in grey; its size is looked at before any pixel is made."""
    from PIL import Image, UnidentifiedImageError

    try:
        file: Path | io.BytesIO = source if isinstance(source, Path) else io.BytesIO(source)
        with warnings.catch_warnings(), Image.open(file, formats=_FORMATS) as opened_picture:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own bound is checked below
            pixels = opened_picture.width * opened_picture.height
            if pixels > max_pixels:
                raise _too_large(f"{pixels:,}, and {max_pixels:,} are allowed")
            picture = in_eight_bits(opened_picture)
            if "A" not in picture.getbands() and "transparency" not in picture.info:
                return picture.convert("L")
            # What is transparent is seen on white paper; black bars would vanish on the black that lies below.
            layer = picture.convert("RGBA")
            paper = Image.new("L", picture.size, "white")
            paper.paste(layer.convert("L"), mask=layer.getchannel("A"))
            return paper
    except Image.DecompressionBombError as error:
        raise _too_large(str(error)) from error
    except FileNotFoundError:
        raise
    except UnidentifiedImageError as error:
        raise _not_an_image(f"it is none of {', '.join(_FORMATS)}") from error
    # Decoders raise all sorts of things when bytes are not what they should be.
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError) as error:
        raise _not_an_image(str(error) or type(error).__name__) from error


def _too_large(why: str) -> Permanent:
    return Permanent(f"the picture has too many pixels: {why}", code="IMAGE_TOO_LARGE")


def _not_an_image(why: str) -> Permanent:
    return Permanent(f"the file is not a picture that can be read: {why}", code="NOT_AN_IMAGE")
