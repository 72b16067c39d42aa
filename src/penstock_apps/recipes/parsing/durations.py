"""How long something takes, in minutes, from what pages say: ISO 8601 mostly, and now and then a sentence."""

from __future__ import annotations

import re

_ISO = re.compile(
    r"\s*+P(?:(?P<days>\d++(?:[.,]\d++)?)D)?"
    r"(?:T?(?:(?P<hours>\d++(?:[.,]\d++)?)H)?(?:(?P<minutes>\d++(?:[.,]\d++)?)M)?(?:(?P<seconds>\d++(?:[.,]\d++)?)S)?)?\s*+$",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(
    r"(?<!\d)(\d++(?:[.,]\d++)?)\s*+(?:-\s*+\d++\s*+)?(days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b", re.I
)
_MINUTES = {"d": 1440.0, "h": 60.0, "m": 1.0, "s": 1 / 60}
_LONGEST = 60 * 24 * 366


def minutes(text: object) -> int | None:
    """Minutes, if the text says so.

    >>> minutes("PT1H30M"), minutes("1 hr 20 mins"), minutes("P0DT0H45M"), minutes("soon")
    (90, 80, 45, None)
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        return _sane(float(text)) if 0 < text <= _LONGEST else None
    if not isinstance(text, str) or len(text) > 200 or text.startswith("-"):
        return None
    iso = _ISO.match(text)
    if iso is not None and any(iso.groups()):
        parts = {name[0]: float(value.replace(",", ".")) for name, value in iso.groupdict().items() if value}
        return _sane(sum(_MINUTES[name] * value for name, value in parts.items()))
    amounts = _IN_WORDS.findall(text)
    if amounts:
        return _sane(sum(_MINUTES[unit[0].lower()] * float(number.replace(",", ".")) for number, unit in amounts))
    return None


def _sane(value: float) -> int | None:
    return round(value) if 0 < value <= _LONGEST else None
