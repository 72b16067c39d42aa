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
_MOST_PIECES = 1_000
_AMOUNT = re.compile(r"[\d½⅓⅔¼¾⅛⅜⅝⅞][\d\s.,/–-]*+[^\W\d_]{0,8}\.?")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of text on a page that was set straight."""

    text: str
    confidence: float
    begin: float
    top: float
    end: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top


def in_reading_order(texts: Sequence[SeenText]) -> list[TextLine]:
    """The lines of a page, as a person reads them."""
    pieces = _set_straight(texts[:_MOST_PIECES])
    if not pieces:
        return []
    line_height = median(piece.height for piece in pieces)
    return [line for column in _columns(pieces, line_height) for line in _lines(column, line_height)]


def _set_straight(texts: Sequence[SeenText]) -> list[_Piece]:
    """The pieces, turned back by the angle at which most of the text stands."""
    angle = _angle(texts)
    cosine, sine = math.cos(angle), math.sin(angle)
    pieces = []
    for part in texts:
        corners = [(x * cosine + y * sine, y * cosine - x * sine) for x, y in part.corners]
        lefts, tops = [x for x, _ in corners], [y for _, y in corners]
        pieces.append(_Piece(part.text, part.confidence, min(lefts), min(tops), max(lefts), max(tops)))
    return pieces


def _angle(texts: Sequence[SeenText]) -> float:
    """How far the text leans: the middle one of its upper edges, where long ones count for more."""
    angles = []
    for part in texts:
        (begin, top), (end, other_top), _, _ = part.corners
        if end > begin:
            angles.append((math.atan2(other_top - top, end - begin), end - begin))
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
    left_side = [piece for piece in band if piece.begin < gutter - 1]
    right_side = [piece for piece in band if piece.begin >= gutter - 1]
    return [column for side in (left_side, right_side) if side for column in _columns(side, line_height)]


def _gutter(pieces: list[_Piece], line_height: float) -> float | None:
    """Where the right column begins: the left edge that the fewest pieces cross."""
    edges: dict[int, float] = {}
    for piece in pieces:  # one for each line's height of the page's width: there are no gutters beside each other
        place = int(piece.begin // line_height)
        edges[place] = min(piece.begin, edges.get(place, piece.begin))
    best: tuple[int, float] | None = None
    for candidate in sorted(edges.values()):
        crossing = [piece for piece in pieces if _crosses(piece, candidate, line_height)]
        if len(crossing) > _MOST_CROSSING * len(pieces) or (best and len(crossing) >= best[0]):
            continue
        beside = [piece for piece in pieces if not _crosses(piece, candidate, line_height)]
        left_side = [piece for piece in beside if piece.begin < candidate - 1]
        right_side = [piece for piece in beside if piece.begin >= candidate - 1]
        if min(len(left_side), len(right_side)) < _FEWEST_IN_A_COLUMN or not _stand_side_by_side(left_side, right_side):
            continue
        if not _is_table(left_side, right_side):
            best = len(crossing), candidate
    return best[1] if best else None


def _crosses(piece: _Piece, gutter: float, line_height: float) -> bool:
    return piece.begin < gutter - 1 and piece.end > gutter - _GUTTER_HEIGHTS * line_height


def _stand_side_by_side(left_side: list[_Piece], right_side: list[_Piece]) -> bool:
    """Do they share the better part of the lower one's height? What stands above is no column beside."""
    tops = [min(piece.top for piece in side) for side in (left_side, right_side)]
    bottoms = [max(piece.bottom for piece in side) for side in (left_side, right_side)]
    shortest = min(bottom - top for top, bottom in zip(tops, bottoms, strict=True))
    return min(bottoms) - max(tops) > shortest / 2


def _is_table(left_side: list[_Piece], right_side: list[_Piece]) -> bool:
    """Are there amounts on the left, and in each of their lines something on the right?"""
    amounts = [piece for piece in left_side if _AMOUNT.fullmatch(piece.text)]
    if len(amounts) < _TABLE * len(left_side):
        return False
    pairs = [piece for piece in amounts if any(_is_same_row(piece, other) for other in right_side)]
    return len(pairs) >= _TABLE * len(amounts)


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
        row.sort(key=lambda piece: piece.begin)
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
