"""Pictures as people see them: upright, in the colours of sRGB, on white paper."""

from __future__ import annotations

import io
from functools import lru_cache

from PIL import Image, ImageCms, ImageFile

from penstock_apps.grey_pictures import in_eight_bits

_LARGEST_PROFILE = 4 * 1024**2
_MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK", "Lab": "LAB"}
"""The colour space a profile speaks of, and the mode of a picture that it is for."""
_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What brings a picture upright, by the orientation that a camera wrote down."""


def small_picture(picture: ImageFile.ImageFile, longest: int) -> Image.Image:
    """A picture as people see it, its longer edge at most so many pixels; a smaller one keeps its size."""
    orientation, profile = orientation_of(picture.getexif()), picture.info.get("icc_profile")
    picture.draft("RGB", (longest, longest))  # a JPEG is read small in the first place
    small = in_eight_bits(picture)
    small.thumbnail((longest, longest), Image.Resampling.LANCZOS, reducing_gap=2.0)
    # Colours are converted and the picture is turned when it is small: a fraction of the time.
    return turn_upright(in_srgb(flat(small), profile), orientation)


def orientation_of(exif: Image.Exif) -> int:
    """How the camera was held, from 1 to 8; 1 is upright."""
    value = exif.get(_ORIENTATION, 1)
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def turn_upright(picture: Image.Image, orientation: int) -> Image.Image:
    """A picture as it was seen when it was taken."""
    turn = _TURNS.get(orientation)
    return picture if turn is None else picture.transpose(turn)


def flat(picture: Image.Image) -> Image.Image:
    """What is transparent is white, as on paper."""
    if not picture.has_transparency_data:
        return picture
    layer = picture.convert("RGBA")
    paper = Image.new("RGBA", layer.size, "white")
    paper.alpha_composite(layer)
    return paper.convert("RGB")


def in_srgb(picture: Image.Image, profile: object) -> Image.Image:
    """A picture in the colours that a browser shows; one without a profile, or with a wrong one, has them already."""
    known_profile = profile if isinstance(profile, bytes) and 0 < len(profile) <= _LARGEST_PROFILE else None
    if picture.mode == "LAB" and known_profile is None:
        known_profile = _lab_profile()
    transform = None if known_profile is None else _transform(known_profile)
    if transform is None:
        return picture.convert("RGB")
    mode, to_srgb = transform
    if mode != picture.mode and {mode, picture.mode} & {"CMYK", "LAB"}:
        return picture.convert("RGB")  # the profile is of another picture
    in_colours = ImageCms.applyTransform(picture if picture.mode == mode else picture.convert(mode), to_srgb)
    assert in_colours is not None, "it is not converted in place"
    return in_colours


@lru_cache(maxsize=16)
def _transform(profile: bytes) -> tuple[str, ImageCms.ImageCmsTransform] | None:
    """The mode that a profile is for, and the way from it to sRGB; None for one that is not understood."""
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        mode = _MODES[source.profile.xcolor_space.strip()]
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
        return mode, ImageCms.buildTransform(source, srgb, mode, "RGB")
    except (ImageCms.PyCMSError, OSError, KeyError, ValueError, TypeError):
        return None


@lru_cache(maxsize=1)
def _lab_profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
