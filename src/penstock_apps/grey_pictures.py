"""Grey pictures of more than eight bits: scans, film, microscopes. Pillow cuts them off at white unless told."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

_WHITE_OF_16_BITS = 65535


def in_eight_bits(picture: Image.Image) -> Image.Image:
    """The same picture in eight bits of grey, from its black to its white; any other as it is.

    Sixteen bits have a white of their own. Whole numbers beyond them and fractions have none: there the darkest pixel
    is black, and the brightest white.
    """
    if not (picture.mode.startswith("I") or picture.mode == "F"):
        return picture
    wide = picture if picture.mode in {"I", "I;16", "F"} else picture.convert("I")
    black, white = (0.0, float(_WHITE_OF_16_BITS)) if picture.mode.startswith("I;16") else _extremes(wide)
    scale = 255 / (white - black) if white > black else 0.0
    grey = wide.point(lambda value: value * scale + (0.5 - black * scale)).convert("L")
    grey.info.pop("transparency", None)  # a level of the many there were
    return grey


def _extremes(picture: Image.Image) -> tuple[float, float]:
    low, high = (float(level) for level in picture.getextrema())  # type: ignore[arg-type]
    if not (math.isfinite(low) and math.isfinite(high)):
        return 0.0, 1.0
    if picture.mode == "I" and low >= 0 and high <= _WHITE_OF_16_BITS:
        return 0.0, float(_WHITE_OF_16_BITS)  # a PNG of sixteen bits
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
