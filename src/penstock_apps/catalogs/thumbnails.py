"""Thumbnails: small, upright, and never half written."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from penstock.private_files import make_private_folder
from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.colours import small_picture
from penstock_apps.catalogs.payloads import ThumbnailData
from penstock_apps.catalogs.pictures import open_scanned_picture


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """One that was made."""

    width: int
    height: int
    size: int

    def as_json(self) -> ThumbnailData:
        """For the database."""
        return {"width": self.width, "height": self.height, "size": self.size}


def write_thumbnails(
    source: Path, sha256: str, targets: Mapping[int, Path], *, quality: int, bounds: Bounds
) -> dict[int, Thumbnail]:
    """Write JPEGs whose longer edge has at most so many pixels; a picture that is smaller stays as it is.

    The picture is read once, and each thumbnail is made of the next larger one. They are kept by the picture's content,
    so one that has changed since the scan has none.
    """
    with open_scanned_picture(source, sha256, bounds) as picture:
        small = small_picture(picture, max(targets))
    thumbnails = {}
    for edge in sorted(targets, reverse=True):
        small.thumbnail((edge, edge), Image.Resampling.LANCZOS, reducing_gap=2.0)
        thumbnails[edge] = _write(small, targets[edge], quality)
    return thumbnails


def _write(small: Image.Image, target: Path, quality: int) -> Thumbnail:
    """Under another name first: whoever looks at the target sees all of it or nothing.

    What a killed process left of the same thumbnail goes, too; one that is just writing it finds it there already.
    """
    content = io.BytesIO()
    small.save(content, "JPEG", quality=quality, optimize=False)
    make_private_folder(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=".part")
    part_file = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content.getbuffer())
        part_file.replace(target)
        for part in target.parent.glob(f".{target.stem}-*.part"):
            part.unlink(missing_ok=True)
    except FileNotFoundError:
        if not target.exists():
            raise
    finally:
        part_file.unlink(missing_ok=True)
    return Thumbnail(small.width, small.height, len(content.getbuffer()))
