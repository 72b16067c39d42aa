"""Pieces of text as they stand on a page, in the order in which a person reads them: column by column, line by line.

A page that lies askew is set straight first. Then a gutter is looked for: a strip that hardly any text crosses, with
text on both sides. What crosses it (a title, for one) ends the columns above it and begins those below. Where the left
side holds amounts alone, and the right side what they are amounts of, that is a table, and is read line by line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from penstock_apps.recipes.photos.text_lines import SeenText, TextLine

_FEWEST_IN_A_COLUMN = 3
_MOST_CROSSING = 0.3
_GUTTER_HEIGHTS = 0.6
"""How wide a gutter is at least, in heights of a line."""
_SAME_ROW = 0.5
"""Pieces that overlap by so much of their height are one line."""
_TABLE = 0.7
_MOST_PIECES = 2_000
_AMOUNT = re.compile(r"[\d½⅓⅔¼¾⅛⅜⅝⅞][\d\s.,/–-]*+[^\W\d_]{0,8}\.?")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of text on a page that was set straight."""

    text: str
    confidence: float
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top


def in_reading_order(seen: Sequence[SeenText]) -> list[TextLine]:
    """The lines of a page, as a person reads them."""
    pieces = _set_straight(seen[:_MOST_PIECES])
    if not pieces:
        return []
    line_height = median(piece.height for piece in pieces)
    return [line for column in _columns(pieces, line_height) for line in _lines(column, line_height)]


def _set_straight(seen: Sequence[SeenText]) -> list[_Piece]:
    """The pieces, turned back by the angle at which most of the text stands."""
    angle = _angle(seen)
    cosine, sine = math.cos(angle), math.sin(angle)
    pieces = []
    for part in seen:
        corners = [(x * cosine + y * sine, y * cosine - x * sine) for x, y in part.corners]
        lefts, tops = [x for x, _ in corners], [y for _, y in corners]
        pieces.append(_Piece(part.text, part.confidence, min(lefts), min(tops), max(lefts), max(tops)))
    return pieces


def _angle(seen: Sequence[SeenText]) -> float:
    """How far the text leans: the middle one of its upper edges, where long ones count for more."""
    angles = []
    for part in seen:
        (left, top), (right, other_top), _, _ = part.corners
        if right > left:
            angles.append((math.atan2(other_top - top, right - left), right - left))
    angles.sort()
    half = sum(length for _, length in angles) / 2
    for angle, length in angles:
        half -= length
        if half <= 0:
            return angle
    return 0.0


def _columns(pieces: list[_Piece], line_height: float) -> list[list[_Piece]]:
    """The pieces by the columns they are in; one column where there is no gutter."""
    gutter = _gutter(pieces, line_height)
    if gutter is None:
        return [pieces]
    columns: list[list[_Piece]] = []
    band: list[_Piece] = []
    for piece in sorted(pieces, key=lambda piece: piece.top):
        if _crosses(piece, gutter, line_height):
            columns += _sides(band, gutter, line_height)
            columns.append([piece])
            band = []
        else:
            band.append(piece)
    return columns + _sides(band, gutter, line_height)


def _sides(band: list[_Piece], gutter: float, line_height: float) -> list[list[_Piece]]:
    """The columns on both sides of a gutter, which may have gutters of their own."""
    left = [piece for piece in band if piece.left < gutter - 1]
    right = [piece for piece in band if piece.left >= gutter - 1]
    return [column for side in (left, right) if side for column in _columns(side, line_height)]


def _gutter(pieces: list[_Piece], line_height: float) -> float | None:
    """Where the right column begins: the left edge that the fewest pieces cross."""
    candidates = sorted({round(piece.left) for piece in pieces})
    found: tuple[int, float] | None = None
    for candidate in candidates:
        crossing = [piece for piece in pieces if _crosses(piece, candidate, line_height)]
        if len(crossing) > _MOST_CROSSING * len(pieces) or (found and len(crossing) >= found[0]):
            continue
        beside = [piece for piece in pieces if not _crosses(piece, candidate, line_height)]
        left = [piece for piece in beside if piece.left < candidate - 1]
        right = [piece for piece in beside if piece.left >= candidate - 1]
        if min(len(left), len(right)) < _FEWEST_IN_A_COLUMN or not _stand_side_by_side(left, right):
            continue
        if not _is_table(left, right):
            found = len(crossing), float(candidate)
    return found[1] if found else None


def _crosses(piece: _Piece, gutter: float, line_height: float) -> bool:
    return piece.left < gutter - 1 and piece.right > gutter - _GUTTER_HEIGHTS * line_height


def _stand_side_by_side(left: list[_Piece], right: list[_Piece]) -> bool:
    """Do they share the better part of the lower one's height? What stands above is no column beside."""
    top = max(min(piece.top for piece in side) for side in (left, right))
    bottom = min(max(piece.bottom for piece in side) for side in (left, right))
    shortest = min(max(piece.bottom for piece in side) - min(piece.top for piece in side) for side in (left, right))
    return bottom - top > shortest / 2


def _is_table(left: list[_Piece], right: list[_Piece]) -> bool:
    """Are there amounts on the left, and in each of their lines something on the right?"""
    amounts = [piece for piece in left if _AMOUNT.fullmatch(piece.text)]
    if len(amounts) < _TABLE * len(left):
        return False
    paired = [piece for piece in amounts if any(_is_same_row(piece, other) for other in right)]
    return len(paired) >= _TABLE * len(amounts)


def _lines(column: list[_Piece], line_height: float) -> list[TextLine]:
    """The lines of a column from top to bottom; pieces beside each other are one line."""
    rows: list[list[_Piece]] = []
    for piece in sorted(column, key=lambda piece: piece.top + piece.bottom):
        if rows and _is_same_row(rows[-1][0], piece):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    lines = []
    above: float | None = None
    for row in rows:
        row.sort(key=lambda piece: piece.left)
        top, bottom = min(piece.top for piece in row), max(piece.bottom for piece in row)
        gap = 0.0 if above is None else max(0.0, (top - above) / line_height)
        text = " ".join(piece.text for piece in row)
        confidence = min(piece.confidence for piece in row)
        lines.append(TextLine(text, confidence, max(piece.height for piece in row), gap))
        above = bottom
    return lines


def _is_same_row(piece: _Piece, other: _Piece) -> bool:
    overlap = min(piece.bottom, other.bottom) - max(piece.top, other.top)
    return overlap > _SAME_ROW * min(piece.height, other.height)
