"""Opening the pictures of strangers: within bounds, upright, on white paper. For processes with limits alone.

Pillow reads the header first, so the number of pixels is known before any of them is made. Types outside of the list
are never handed to a decoder.
"""

from __future__ import annotations

import io
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from penstock_apps.recipes.photos.failures import EXTRA, PictureFailure
from penstock_apps.recipes.photos.text_lines import PictureFile

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "HEIF")
_HEIC_BRANDS = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")
_BEGINNINGS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"BM")
"""Of files that were pictures once, where not even their heads can be read."""
_LONGEST_EDGE = 2000
"""What is read of a picture: more pixels take longer, and their letters are no clearer."""
_PREVIEW_EDGE = 1600
_PREVIEW_QUALITY = 80


def open_upright(file: PictureFile) -> Image.Image:
    """The picture as a person sees it, no larger than it has to be; what is wrong with it is a ``PictureFailure``."""
    try:
        if not file.path.stat().st_size:
            raise PictureFailure.EMPTY.error()
        with warnings.catch_warnings(), Image.open(file.path, formats=_formats()) as picture:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own bound is checked below
            pixels = picture.width * picture.height
            if pixels > file.max_pixels:
                raise PictureFailure.TOO_MANY_PIXELS.error(f"{pixels:,}, and {file.max_pixels:,} are allowed")
            picture.draft("RGB", (_LONGEST_EDGE, _LONGEST_EDGE))  # a JPEG is read small in the first place
            return _upright(picture)
    except Image.DecompressionBombError as error:
        raise PictureFailure.TOO_MANY_PIXELS.error(str(error)) from error
    except UnidentifiedImageError as error:
        raise _reason_of(file.path) from error
    except FileNotFoundError:
        raise
    # Decoders raise all sorts of things when bytes are not what they should be.
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError) as error:
        raise PictureFailure.BROKEN.error(str(error) or type(error).__name__) from error


def preview_of(picture: Image.Image) -> bytes:
    """The picture as a JPEG for browsers, without what the camera wrote into it: where it was taken, for one."""
    small = picture.copy()
    small.thumbnail((_PREVIEW_EDGE, _PREVIEW_EDGE), Image.Resampling.LANCZOS)
    content = io.BytesIO()
    small.save(content, "JPEG", quality=_PREVIEW_QUALITY)
    return content.getvalue()


def _upright(picture: Image.Image) -> Image.Image:
    """Small first, and turned then: a quarter of the time."""
    picture.thumbnail((_LONGEST_EDGE, _LONGEST_EDGE), Image.Resampling.LANCZOS, reducing_gap=2.0)
    upright = ImageOps.exif_transpose(picture)
    if "A" not in upright.getbands() and "transparency" not in upright.info:
        return upright.convert("RGB")
    # What is transparent is seen on white paper; black letters would vanish on the black that lies below.
    layer = upright.convert("RGBA")
    paper = Image.new("RGB", layer.size, "white")
    paper.paste(layer, mask=layer.getchannel("A"))
    return paper


@cache
def _formats() -> list[str]:
    """What can be read here. HEIC needs a library of its own."""
    with suppress(ImportError):
        import pillow_heif

        pillow_heif.register_heif_opener()
    Image.init()
    return [name for name in _FORMATS if name in Image.OPEN]


def _reason_of(path: Path) -> Exception:
    with path.open("rb") as file:
        head = file.read(12)
    if head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS and "HEIF" not in _formats():
        return PictureFailure.UNSUPPORTED.error(f"HEIC needs pillow-heif, not installed here: install {EXTRA}")
    if head.startswith(_BEGINNINGS):
        return PictureFailure.BROKEN.error("its head cannot be read")
    names = ", ".join("HEIC" if name == "HEIF" else name for name in _formats())
    return PictureFailure.UNSUPPORTED.error(f"send one of {names}")
