"""Numbers as people write them in recipes: fractions of a character or of three, mixed ones, decimals of two kinds."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

_SLASHES = str.maketrans({"⁄": "/", "∕": "/", "–": "-", "—": "-", "−": "-", "‑": "-", "\u00a0": " ", "×": "x"})
# None of them gives back what it has taken: what people write here has no bound but the length of a line.
FRACTION = r"\d++\s*+/\s*+\d++"
_MIXED_NUMBER = rf"\d++(?:\s++|-|\s*+(?:and|&|und|et|y|e|i|en|og|och)\s*+){FRACTION}"
_THOUSANDS = r"[1-9]\d{0,2}(?:,\d{3})+(?!\d)|[1-9]\d{0,2}(?:\.\d{3}){2,}(?!\d)"
NUMBER = rf"{_MIXED_NUMBER}|{FRACTION}|{_THOUSANDS}|\d++(?:[.,]\d++)?|\.\d++"
TO = r"(?:-|to|or|bis|oder|à|a|ou|o|tot|till|til|do|до)"
"""What stands between the ends of a range."""
_PARTS_OF_MIXED = re.compile(r"(\d++)\D++(\d++)\s*+/\s*+(\d++)")
_LARGEST = 1e9


def plain_characters(text: str) -> str:
    """Fractions that are one character become three (``1½`` is ``1 1/2``), and dashes and blanks the plain ones."""
    if text.isascii():
        return text.strip()
    parts: list[str] = []
    for character in text:
        if unicodedata.category(character) == "No" and "fraction" in unicodedata.name(character, "").lower():
            if parts and parts[-1][-1:].isdigit():
                parts.append(" ")
            parts.append(unicodedata.normalize("NFKC", character))
        else:
            parts.append(character)
    return "".join(parts).translate(_SLASHES).strip()


def read_number(text: str | None) -> float | None:
    """A number as people write it; a fraction by nothing is none.

    >>> read_number("1 1/2"), read_number("1,5"), read_number("1,000"), read_number("1/0")
    (1.5, 1.5, 1000.0, None)
    """
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 10:  # most are, and a fraction takes a while to make
        return float(text)
    number = _read_number(text)
    return number if number is not None and number < _LARGEST else None


def _read_number(text: str) -> float | None:
    try:
        parts = _PARTS_OF_MIXED.fullmatch(text)
        if parts:
            return round(float(int(parts[1]) + Fraction(int(parts[2]), int(parts[3]))), 4)
        if re.fullmatch(_THOUSANDS, text):
            return float(text.replace(",", "").replace(".", ""))
        return round(float(Fraction("".join(text.split()).replace(",", "."))), 4)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
