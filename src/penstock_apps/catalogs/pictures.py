"""Opening pictures that strangers made: within bounds, or not at all.

Pillow reads the header first, so the number of pixels is known before any of them is made. Types outside the list are
never handed to a decoder.
"""

from __future__ import annotations

import errno
import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageFile, UnidentifiedImageError

from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.failures import PhotoFailure

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "HEIF")
_TRUNCATION_WORDS = ("truncated", "unexpected end", "broken data stream", "image file is truncated", "not enough data")
_HEIF_BRANDS = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"))
_READ_AT_ONCE = 1 << 20


class FileVersion(NamedTuple):
    """What is different once somebody has written to a file, or put another in its place."""

    inode: int
    size: int
    mtime_ns: int


@contextmanager
def open_picture(path: Path, bounds: Bounds) -> Iterator[ImageFile.ImageFile]:
    """A picture whose header is read and whose pixels are not; what is wrong with it comes out as a photo's failure."""
    with _failures_of(path):
        size = path.stat().st_size
        if not size:
            raise PhotoFailure.EMPTY.error()
        if size > bounds.max_bytes:
            raise PhotoFailure.TOO_LARGE.error(f"{size:,} bytes, and {bounds.max_bytes:,} are allowed")
        with warnings.catch_warnings(), Image.open(path, formats=_formats()) as picture:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own bound is checked below
            pixels = picture.width * picture.height
            if pixels > bounds.max_pixels:
                raise PhotoFailure.TOO_MANY_PIXELS.error(f"{pixels:,}, and {bounds.max_pixels:,} are allowed")
            yield picture


@contextmanager
def open_scanned_picture(path: Path, sha256: str, bounds: Bounds) -> Iterator[ImageFile.ImageFile]:
    """The same for a picture that a scan has found; one whose bytes are others by now is refused.

    That is known for sure when the block has ended: what was made of the picture is kept only then.
    """
    before = version_of(path)
    with open_picture(path, bounds) as picture:
        if content_sha256(path) != sha256:
            raise PhotoFailure.CHANGED.error()
        yield picture
        if version_of(path) != before:
            raise PhotoFailure.CHANGED.error()


def content_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_READ_AT_ONCE):
            digest.update(chunk)
    return digest.hexdigest()


def version_of(path: Path) -> FileVersion:
    """A file as it is now."""
    with _failures_of(path):
        status = path.stat()
    return FileVersion(status.st_ino, status.st_size, status.st_mtime_ns)


@contextmanager
def _failures_of(path: Path) -> Iterator[None]:
    """What goes wrong in the block comes out as a photo's failure."""
    try:
        yield
    except Image.DecompressionBombError as error:
        raise PhotoFailure.TOO_MANY_PIXELS.error(str(error)) from error
    except UnidentifiedImageError as error:
        raise PhotoFailure.UNSUPPORTED.error(_what_to_install(path)) from error
    except FileNotFoundError as error:
        raise PhotoFailure.MISSING.error() from error
    except MemoryError as error:
        raise PhotoFailure.TOO_MANY_PIXELS.error("it does not fit into memory") from error
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError) as error:
        raise _meaning(error) from error


def _meaning(error: Exception) -> Exception:
    """What a decoder's error means. Decoders raise all sorts of things when bytes are not what they should be."""
    if isinstance(error, OSError) and error.errno in (
        errno.EACCES,
        errno.EIO,
        errno.ESTALE,
        errno.EMFILE,
        errno.ENFILE,
    ):
        return PhotoFailure.UNREADABLE.error(str(error))
    if isinstance(error, EOFError) or any(word in str(error).lower() for word in _TRUNCATION_WORDS):
        return PhotoFailure.TRUNCATED.error(str(error))
    return PhotoFailure.CORRUPT.error(str(error))


@cache
def _formats() -> list[str]:
    """What can be read here. HEIC needs a library of its own; without it such files are of an unsupported type."""
    with suppress(ImportError):
        import pillow_heif

        pillow_heif.register_heif_opener()
    Image.init()
    return [name for name in FORMATS if name in Image.OPEN]


def _what_to_install(path: Path) -> str:
    """Which extra brings what reads a file; empty where none does."""
    if "HEIF" in _formats():
        return ""
    with path.open("rb") as file:
        head = file.read(12)
    is_heif = head[4:8] == b"ftyp" and head[8:12] in _HEIF_BRANDS
    return "it is HEIC, which the library pillow-heif reads; install penstock[catalogs]" if is_heif else ""
