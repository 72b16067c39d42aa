"""Tags for a photo, from its facts and from what it looks like.

``PENSTOCK_TAGGERS`` names functions of your own that know more tags. They are called where photos are read, in
processes of their own, so they are named (``module:function``) and not handed over.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from penstock.errors import ConfigurationError
from penstock.lifecycle import JSON
from penstock_apps.plurals import pluralize

if TYPE_CHECKING:
    from PIL import Image

Facts = Mapping[str, JSON]
Tagger = Callable[[Facts, "Image.Image"], Iterable[str]]
"""Returns tags for a photo, from what a scan found and from the picture, upright and small."""

TAGGERS = "PENSTOCK_TAGGERS"
_SEASONS = ("winter", "spring", "summer", "autumn")
_PARTS_OF_DAY = ((5, "night"), (11, "morning"), (14, "noon"), (18, "afternoon"), (22, "evening"), (24, "night"))
_COLOURS = {
    "black": (0, 0, 0), "white": (255, 255, 255), "grey": (128, 128, 128), "red": (200, 30, 30),
    "orange": (240, 140, 20), "yellow": (240, 220, 40), "green": (50, 150, 50), "blue": (40, 90, 200),
    "purple": (120, 50, 150), "pink": (240, 150, 180), "brown": (110, 70, 40),
}  # fmt: skip
_SHARE_OF_A_COLOUR = 0.15
_PANORAMA = 2.0


def tags_of(facts: Facts, picture: Image.Image, more: Iterable[Tagger] = ()) -> list[str]:
    """All tags of a photo, each once, in order."""
    tags = [*_shape(facts), *_moment(facts), *_origin(facts), *_colours(picture)]
    for tagger in more:
        tags += map(str, tagger(facts, picture))
    return sorted(dict.fromkeys(tags))


@cache
def load_taggers(names: tuple[str, ...]) -> tuple[Tagger, ...]:
    """The functions that ``PENSTOCK_TAGGERS`` names."""
    return tuple(_tagger(name) for name in names)


def _tagger(name: str) -> Tagger:
    module, _, attribute = name.partition(":")
    try:
        tagger: Tagger = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"{TAGGERS} names {name!r}, which cannot be imported: {error}") from error
    if not callable(tagger):
        raise ConfigurationError(f"{TAGGERS} names {name!r}, which is no function")
    return tagger


def _shape(facts: Facts) -> Iterable[str]:
    width, height = int(facts["width"]), int(facts["height"])
    if not (width and height):
        return
    yield "square" if width == height else "landscape" if width > height else "portrait"
    if max(width, height) / min(width, height) >= _PANORAMA:
        yield "panorama"
    yield _megapixels(width * height)
    if facts.get("frames", 1) > 1:
        yield "animated"


def _megapixels(pixels: int) -> str:
    """As cameras are sold by; of small pictures with a decimal.

    >>> [_megapixels(pixels) for pixels in (100, 640 * 480, 1_000_000, 24_160_000)]
    ['under 0.1 megapixels', '0.3 megapixels', '1 megapixel', '24 megapixels']
    """
    millions = pixels / 1e6
    if millions < 0.05:
        return "under 0.1 megapixels"
    if millions < 0.95:
        return f"{millions:.1f} megapixels"
    return pluralize(round(millions), "megapixel")


def _moment(facts: Facts) -> Iterable[str]:
    if not facts.get("taken_at"):
        return
    taken_at = datetime.fromisoformat(facts["taken_at"])
    yield f"{taken_at:%Y}"
    yield f"{taken_at:%Y-%m}"
    yield _SEASONS[taken_at.month % 12 // 3]  # of the northern half: most people live there
    yield next(name for until, name in _PARTS_OF_DAY if taken_at.hour < until)


def _origin(facts: Facts) -> Iterable[str]:
    if facts.get("camera_model"):
        yield str(facts["camera_model"])
    if facts.get("latitude") is not None:
        latitude, longitude = float(facts["latitude"]), float(facts["longitude"])
        north, east = "N" if latitude >= 0 else "S", "E" if longitude >= 0 else "W"
        yield f"{abs(latitude):.0f}°{north} {abs(longitude):.0f}°{east}"


def _colours(picture: Image.Image) -> Iterable[str]:
    """The colours that fill a good part of the picture."""
    from PIL import Image

    small = picture.convert("RGB").resize((32, 32), Image.Resampling.BOX)
    counts = dict.fromkeys(_COLOURS, 0)
    pixels = small.tobytes()
    for first in range(0, len(pixels), 3):
        counts[_nearest(*pixels[first : first + 3])] += 1
    for name, count in counts.items():
        if count / (32 * 32) >= _SHARE_OF_A_COLOUR:
            yield name
    if all(max(pixels[at : at + 3]) - min(pixels[at : at + 3]) < 12 for at in range(0, len(pixels), 3)):
        yield "monochrome"


def _nearest(red: int, green: int, blue: int) -> str:
    return min(
        _COLOURS,
        key=lambda name: (
            (red - _COLOURS[name][0]) ** 2 + (green - _COLOURS[name][1]) ** 2 + (blue - _COLOURS[name][2]) ** 2
        ),
    )
