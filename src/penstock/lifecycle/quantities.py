"""Durations and sizes as people write them: ``"30s"``, ``"5m"``, ``"512MiB"``."""

from __future__ import annotations

import re
from datetime import timedelta

from penstock.errors import ConfigurationError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_QUANTITY = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*$")


def seconds(duration: str | float | timedelta) -> float:
    """A duration in seconds: a number already is one, ``"250ms"`` is 0.25.

    >>> seconds("5m"), seconds(1.5), seconds(timedelta(hours=1))
    (300.0, 1.5, 3600.0)
    """
    if isinstance(duration, timedelta):
        value = duration.total_seconds()
    elif isinstance(duration, str):
        value = _measure(duration, _SECONDS, "duration", "30s, 5m, 2h, 3d or 250ms")
    else:
        value = float(duration)
    if not 0 <= value < 1e10:
        raise ConfigurationError(f"a duration of {duration!r} is out of range; give 0 or more seconds")
    return value


def size_in_bytes(size: str | int) -> int:
    """A size in bytes.

    >>> size_in_bytes("512MiB"), size_in_bytes(100)
    (536870912, 100)
    """
    value = int(_measure(size, _BYTES, "size", "512MiB, 2GB or 100kB")) if isinstance(size, str) else size
    if value <= 0:
        raise ConfigurationError(f"a size of {size!r} is out of range; give at least one byte")
    return value


def _measure(text: str, units: dict[str, float] | dict[str, int], what: str, examples: str) -> float:
    match = _QUANTITY.match(text)
    if match is None or match[2] not in units:
        raise ConfigurationError(f"{text!r} is not a {what}; write one like {examples}")
    return float(match[1]) * units[match[2]]
