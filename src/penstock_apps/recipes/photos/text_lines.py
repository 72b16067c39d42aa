"""Pictures, and the lines of text that were seen in them, apart from the libraries that open and read them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

Corner = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A picture that was sent, and what it may be."""

    path: Path
    max_pixels: int


@dataclass(frozen=True, slots=True)
class SeenText:
    """A piece of text, and where it stands: its corners, in the order in which it is read."""

    text: str
    confidence: float
    corners: tuple[Corner, Corner, Corner, Corner]
    """Upper left, upper right, lower right and lower left, as the picture has them."""

    @property
    def width(self) -> float:
        """How far it goes from left to right."""
        return max(x for x, _ in self.corners) - min(x for x, _ in self.corners)

    @property
    def height(self) -> float:
        """How far it goes from top to bottom."""
        return max(y for _, y in self.corners) - min(y for _, y in self.corners)


@dataclass(frozen=True, slots=True)
class PictureText:
    """What was seen in a picture, and the picture itself for people."""

    lines: tuple[SeenText, ...]
    preview: bytes
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line in its place among the others."""

    text: str
    confidence: float
    height: float
    gap: float = 0.0
    """The space above it, in heights of a line; 0 for the first of a column."""
