"""A number that is nearly the same for pictures that look nearly the same.

The picture is shrunk to nine by eight grey pixels; each of the 64 bits says whether a pixel is brighter than the one to
its right. Size, compression and small changes of colour hardly matter. Turning the picture does, so it is done upright.

Of a picture that shows next to nothing these bits say nothing: a blank wall, a wall with a dark strip at its left and a
sky that gets brighter have the same ones. Such a picture has no hash (``NO_HASH``), and is like no other.
"""

from __future__ import annotations

from PIL import Image, ImageFile

from penstock_apps.catalogs.colours import flat, orientation_of, turn_upright
from penstock_apps.catalogs.hash_bits import BITS, NO_HASH
from penstock_apps.grey_pictures import in_eight_bits

_WIDTH, _HEIGHT = 9, 8
_CLEAR_LEVELS = 2
"""Neighbours that differ in fewer levels of grey differ by accident."""
_MIN_CLEAR = 4
"""So many neighbours have to get clearly darker, and as many clearly brighter, for a picture to show something."""
_MIN_BITS = 5
"""Of fewer set bits, or fewer that are not, any two hashes would be near each other."""


def perceptual_hash(picture: ImageFile.ImageFile | Image.Image) -> int:
    """64 bits of what a picture looks like, or ``NO_HASH``."""
    orientation = orientation_of(picture.getexif())
    if isinstance(picture, ImageFile.ImageFile):
        picture.draft("L", (_WIDTH * 8, _HEIGHT * 8))  # a JPEG can be read small in the first place
    upright = turn_upright(flat(in_eight_bits(picture)), orientation)
    small = upright.convert("L").resize((_WIDTH, _HEIGHT), Image.Resampling.BOX)
    return _bits(small.tobytes())


def _bits(pixels: bytes) -> int:
    bits = darker = brighter = 0
    for row in range(_HEIGHT):
        first = row * _WIDTH
        for column in range(_WIDTH - 1):
            difference = pixels[first + column] - pixels[first + column + 1]
            bits = bits << 1 | (difference > 0)
            darker += difference >= _CLEAR_LEVELS
            brighter += difference <= -_CLEAR_LEVELS
    shows_something = min(darker, brighter) >= _MIN_CLEAR and _MIN_BITS <= bits.bit_count() <= BITS - _MIN_BITS
    return bits if shows_something else NO_HASH
