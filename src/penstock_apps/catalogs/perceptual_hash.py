"""A number that is nearly the same for pictures that look nearly the same.

The picture is shrunk to nine by eight grey pixels; each of the 64 bits says whether a pixel is brighter than the one to
its right. Size, compression and small changes of colour hardly matter. Turning the picture does, so it is done upright.
"""

from __future__ import annotations

from PIL import Image, ImageFile, ImageOps

_WIDTH, _HEIGHT = 9, 8


def perceptual_hash(picture: ImageFile.ImageFile | Image.Image) -> int:
    """64 bits of what a picture looks like."""
    if isinstance(picture, ImageFile.ImageFile):
        picture.draft("L", (_WIDTH * 8, _HEIGHT * 8))  # a JPEG can be read small in the first place
    small = ImageOps.exif_transpose(flat(picture)).convert("L").resize((_WIDTH, _HEIGHT), Image.Resampling.BOX)
    pixels = small.tobytes()
    bits = 0
    for row in range(_HEIGHT):
        first = row * _WIDTH
        for column in range(_WIDTH - 1):
            bits = bits << 1 | (pixels[first + column] > pixels[first + column + 1])
    return bits


def flat(picture: Image.Image) -> Image.Image:
    """What is transparent is white, as on paper."""
    if not picture.has_transparency_data:
        return picture
    exif = picture.getexif()
    layer = picture.convert("RGBA")
    paper = Image.new("RGBA", layer.size, "white")
    paper.alpha_composite(layer)
    opaque = paper.convert("RGB")
    opaque.getexif().update(exif)
    return opaque
