"""What a photo says of itself: its size, when and where it was taken, with what."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from PIL import ExifTags, Image

from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.colours import orientation_of
from penstock_apps.catalogs.failures import PhotoFailure
from penstock_apps.catalogs.payloads import PhotoFacts
from penstock_apps.catalogs.perceptual_hash import perceptual_hash
from penstock_apps.catalogs.pictures import content_sha256, open_picture, version_of

_LONGEST_TEXT = 200
_SIDEWAYS = (5, 6, 7, 8)


def facts_of(path: Path, bounds: Bounds) -> PhotoFacts:
    """All a scan keeps of a photo, as JSON."""
    version = version_of(path)
    with open_picture(path, bounds) as picture:
        exif = picture.getexif()
        orientation = orientation_of(exif)
        width, height = picture.size
        if orientation in _SIDEWAYS:
            width, height = height, width
        latitude, longitude = _place(exif)
        looks, sha256 = perceptual_hash(picture), content_sha256(path)
        if version_of(path) != version:
            raise PhotoFailure.UNREADABLE.error("somebody is writing to it")
        return {
            "type": "JPEG" if picture.format == "MPO" else picture.format,
            "width": width,
            "height": height,
            "orientation": orientation,
            "frames": getattr(picture, "n_frames", 1),
            "camera_make": _text(exif.get(ExifTags.Base.Make)),
            "camera_model": _text(exif.get(ExifTags.Base.Model)),
            "taken_at": _taken_at(exif),
            "latitude": latitude,
            "longitude": longitude,
            "perceptual_hash": f"{looks:016x}",
            "size": version.size,
            "modified": version.mtime_ns,
            "sha256": sha256,
        }


def _taken_at(exif: Image.Exif) -> str | None:
    """The moment by the camera's own clock: it has no zone."""
    within = exif.get_ifd(ExifTags.IFD.Exif)
    text = _text(within.get(ExifTags.Base.DateTimeOriginal) or exif.get(ExifTags.Base.DateTime))
    try:
        return datetime.strptime(text or "", "%Y:%m:%d %H:%M:%S").isoformat()  # noqa: DTZ007 - there is none
    except ValueError:
        return None


def _place(exif: Image.Exif) -> tuple[float | None, float | None]:
    """Latitude and longitude, both or neither."""
    gps = exif.get_ifd(ExifTags.IFD.GPSInfo)
    latitude = _degrees(gps.get(ExifTags.GPS.GPSLatitude), gps.get(ExifTags.GPS.GPSLatitudeRef), "S", 90)
    longitude = _degrees(gps.get(ExifTags.GPS.GPSLongitude), gps.get(ExifTags.GPS.GPSLongitudeRef), "W", 180)
    return (None, None) if latitude is None or longitude is None else (latitude, longitude)


def _degrees(parts: Iterable[float] | None, reference: object, negative: str, limit: int) -> float | None:
    try:
        degrees, minutes, seconds = (float(part) for part in parts or ())
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    value = degrees + minutes / 60 + seconds / 3600
    if not 0 <= value <= limit:  # also what is no number
        return None
    return round(-value if reference == negative else value, 6)


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    text = "".join(character for character in value if character.isprintable()).strip()[:_LONGEST_TEXT]
    return text or None
