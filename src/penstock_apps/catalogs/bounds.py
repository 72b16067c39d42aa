"""Limits of a photo, apart from the code that reads photos, which takes a while to load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a photo may be."""

    max_bytes: int = 512 * 1024**2
    max_pixels: int = 250_000_000
