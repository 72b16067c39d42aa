"""What a photo says of itself: its size, when and where it was taken, with what."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image

from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.perceptual_hash import perceptual_hash
from penstock_apps.catalogs.pictures import opened

_READ_AT_ONCE = 1 << 20
_LONGEST_TEXT = 200
_SIDEWAYS = (5, 6, 7, 8)


def facts_of(path: Path, bounds: Bounds) -> dict[str, Any]:
    """All a scan keeps of a photo, as JSON."""
    status = path.stat() if path.exists() else None
    with opened(path, bounds) as picture:
        exif = picture.getexif()
        orientation = _orientation(exif)
        width, height = picture.size
        facts: dict[str, Any] = {
            "type": "JPEG" if picture.format == "MPO" else picture.format,
            "width": height if orientation in _SIDEWAYS else width,
            "height": width if orientation in _SIDEWAYS else height,
            "orientation": orientation,
            "frames": getattr(picture, "n_frames", 1),
            **_camera(exif),
            **_taken(exif),
            **_place(exif),
            "perceptual_hash": f"{perceptual_hash(picture):016x}",
        }
    assert status is not None
    return facts | {"size": status.st_size, "modified": status.st_mtime_ns, "sha256": _sha256(path)}


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_READ_AT_ONCE):
            digest.update(chunk)
    return digest.hexdigest()


def _orientation(exif: Image.Exif) -> int:
    value = exif.get(ExifTags.Base.Orientation, 1)
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _camera(exif: Image.Exif) -> dict[str, Any]:
    return {
        "camera_make": _text(exif.get(ExifTags.Base.Make)),
        "camera_model": _text(exif.get(ExifTags.Base.Model)),
    }


def _taken(exif: Image.Exif) -> dict[str, Any]:
    """The moment by the camera's own clock: it has no zone."""
    within = exif.get_ifd(ExifTags.IFD.Exif)
    given = _text(within.get(ExifTags.Base.DateTimeOriginal) or exif.get(ExifTags.Base.DateTime))
    try:
        taken = datetime.strptime(given or "", "%Y:%m:%d %H:%M:%S").isoformat()  # noqa: DTZ007 - there is none
    except ValueError:
        taken = None
    return {"taken_at": taken}


def _place(exif: Image.Exif) -> dict[str, Any]:
    gps = exif.get_ifd(ExifTags.IFD.GPSInfo)
    latitude = _degrees(gps.get(ExifTags.GPS.GPSLatitude), gps.get(ExifTags.GPS.GPSLatitudeRef), "S", 90)
    longitude = _degrees(gps.get(ExifTags.GPS.GPSLongitude), gps.get(ExifTags.GPS.GPSLongitudeRef), "W", 180)
    known = latitude is not None and longitude is not None
    return {"latitude": latitude if known else None, "longitude": longitude if known else None}


def _degrees(given: Any, reference: Any, negative: str, most: int) -> float | None:
    try:
        degrees, minutes, seconds = (float(one) for one in given)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    value = degrees + minutes / 60 + seconds / 3600
    if not 0 <= value <= most:  # also what is no number
        return None
    return round(-value if reference == negative else value, 6)


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = "".join(one for one in value if one.isprintable()).strip()[:_LONGEST_TEXT]
    return text or None
