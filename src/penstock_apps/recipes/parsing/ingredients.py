"""One line of a list of ingredients: how much, of what measure, of what. The line itself is always kept.

What is not understood becomes the name, whole: a cook can read it, and nothing was lost.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from penstock_apps.recipes.parsing.measures import BEHIND, CONTAINERS, MAX_WORDS, VAGUE, measure
from penstock_apps.recipes.parsing.quantities import write_quantity
from penstock_apps.recipes.payloads import IngredientData


@dataclass(frozen=True, slots=True)
class Ingredient:
    """A line, understood as far as it goes."""

    text: str
    name: str
    quantity: float | None = None
    quantity_to: float | None = None
    """The upper end of a range."""
    unit: str | None = None
    note: str | None = None

    def as_json(self) -> IngredientData:
        """For the database and the API."""
        amount = None if self.quantity is None else write_quantity(self.quantity, self.quantity_to)
        without_amount = f"{self.name}, {self.note}" if self.note else self.name
        return {
            "text": self.text if amount is None else without_amount,
            "quantity": amount,
            "quantity_display": amount,
            "quantity_value": self.quantity,
            "quantity_to": self.quantity_to,
            "unit": self.unit,
            "name": self.name,
            "note": self.note,
            "line": self.text,
        }


_WORDS: dict[str, int | Fraction] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "half": Fraction(1, 2), "quarter": Fraction(1, 4),
    "dozen": 12,
}  # fmt: skip
_SLASHES = str.maketrans({"⁄": "/", "∕": "/", "–": "-", "—": "-", "−": "-", "‑": "-", "\u00a0": " ", "×": "x"})
# None of them gives back what it has taken: what people write here has no bound but the length of a line.
_FRACTION = r"\d++\s*+/\s*+\d++"
_MIXED_NUMBER = rf"\d++(?:\s++|-|\s*+(?:and|&|und|et|y)\s*+){_FRACTION}"
_THOUSANDS = r"[1-9]\d{0,2}(?:,\d{3})+(?!\d)"
_NUMBER = rf"{_MIXED_NUMBER}|{_FRACTION}|{_THOUSANDS}|\d++(?:[.,]\d++)?|\.\d++"
_AMOUNT = re.compile(
    rf"(?P<first>{_NUMBER})(?:\s*+(?:-|to|or|bis|à|a|tot|till)\s*+(?P<last>{_NUMBER}))?(?!\d)", re.IGNORECASE
)
_PARTS_OF_MIXED = re.compile(r"(\d++)\D++(\d++)\s*+/\s*+(\d++)")
_ABOUT = re.compile(r"(?:about|approximately|approx\.?|around|circa|ca\.?|roughly|~)\s++", re.I)
_WORD = r"[^\W\d_]++\.?"
_LETTERS = re.compile(rf"\s*+(?:-\s*+)?({_WORD})(?:\s++({_WORD}))?(?:\s++({_WORD}))?")
_HOW = re.compile(r"(heaped|heaping|rounded|level|scant|generous|good|big|large|small)\s++", re.I)
_TIMES = re.compile(r"\s*+x\s*+(?=\d)", re.I)
_IN_FRONT = re.compile(rf"\(([^()]++)\)\s*+|((?:{_NUMBER})(?:\s*+(?:-|to)\s*+(?:{_NUMBER}))?\s*+(?:-\s*+)?{_WORD})\s++")
_MORE = re.compile(rf"\s*+(/|\+|plus\b|and\b)\s*+((?:{_NUMBER})\s*+)", re.I)
_NEXT = re.compile(rf"\s*+(?:{_NUMBER})\s*+")
_BULLET = re.compile(r"^[\s•·▢☐◦\-*–—]+(?=\S)")
_IN_BRACKETS = re.compile(r" ?\(([^()]*+)\)")
_OF = re.compile(r"^(?:of\s+(?:the\s+|an?\s+)?|(?:de|du|des|di|del|della)\s+|d['’])", re.IGNORECASE)
_PART_OF = re.compile(r"^(?:of\s+)?(?:the|an?)\s+", re.IGNORECASE)
_TO_TASTE = re.compile(
    r",? ?\b((?:or )?(?:to taste|as needed|as required|for serving|to serve|for garnish|optional"
    r"|nach geschmack|au goût|al gusto|a piacere|naar smaak|efter smak))\b\.?",
    re.I,
)
_LONGEST = 1_000
_LARGEST = 1e9


def read_ingredient(line: str) -> Ingredient:
    """Read a line of ingredients.

    >>> flour = read_ingredient("1 ½ cups flour, sifted")
    >>> flour.quantity, flour.unit, flour.name, flour.note
    (1.5, 'cup', 'flour', 'sifted')
    >>> read_ingredient("2-3 cloves garlic").quantity_to
    3.0
    >>> read_ingredient("Salt, to taste").note
    'to taste'
    """
    text = " ".join(line.split())[:_LONGEST]
    rest = _BULLET.sub("", _plain(text))
    about = _ABOUT.match(rest)
    quantity, quantity_to, rest = _amount(rest[about.end() :] if about else rest)
    if quantity is None:
        quantity, unit, rest, notes = _vague(rest)
    else:
        unit, rest, notes = _measure_of(rest)
    name, remarks = _name(rest)
    if not name:
        return Ingredient(text, text)
    if unit is None and quantity is not None:
        unit, name = _behind(name)
    return Ingredient(text, name, quantity, quantity_to, unit, ", ".join((*remarks, *notes)) or None)


def _plain(text: str) -> str:
    """Fractions that are one character become three: ``1½`` is ``1 1/2``."""
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


# How much ----------------------------------------------------------------------------------------------------------


def _amount(text: str) -> tuple[float | None, float | None, str]:
    amount = _AMOUNT.match(text)
    if amount is None:
        return _in_words(text)
    first, last = _value(amount["first"]), _value(amount["last"])
    if first is None:
        return None, None, text
    rest = text[amount.end() :]
    if last is not None and last < 1 <= first:  # 1 - 1/2 is one and a half
        first, last = first + last, None
    dozens, behind = _dozens(rest)
    if dozens:
        return first * 12, last and last * 12, behind
    return first, last, _PART_OF.sub("", rest.lstrip()) if first < 1 else rest


def _in_words(text: str) -> tuple[float | None, float | None, str]:
    word, _, rest = text.partition(" ")
    numeral = word.lower()
    if numeral not in _WORDS or not rest:
        return None, None, text
    number = float(_WORDS[numeral])
    dozens, behind = _dozens(f" {rest}")
    if dozens:
        return number * 12, None, behind
    if numeral in ("a", "an") and _measure_of(rest)[0] is None:
        return None, None, text
    return number, None, _PART_OF.sub("", rest) if numeral in ("half", "quarter", "dozen") else rest


def _dozens(rest: str) -> tuple[bool, str]:
    dozen = re.match(r"\s+dozen\s+(?=\S)", rest, re.IGNORECASE)
    return (True, rest[dozen.end() :]) if dozen else (False, rest)


def _value(text: str | None) -> float | None:
    """A number as people write it; a fraction by nothing is none."""
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
            return float(text.replace(",", ""))
        return round(float(Fraction("".join(text.split()).replace(",", "."))), 4)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


# Of what measure ---------------------------------------------------------------------------------------------------


def _measure_of(text: str) -> tuple[str | None, str, list[str]]:
    """The measure a text begins with, what comes after it, and what is said of its size or beside it."""
    times = _TIMES.match(text)
    text = text[times.end() :] if times else text.lstrip()
    size = _IN_FRONT.match(text)
    if size is not None:  # 1 (15 ounce) can, 2 x 400 g tins
        unit, end = _unit(text, size.end())
        if unit in CONTAINERS or (unit is not None and size[1]):
            return unit, _OF.sub("", text[end:].strip()), [(size[1] or size[2]).strip()]
        return None, text, []
    how = _HOW.match(text)
    unit, end = _unit(text, how.end() if how else 0)
    if unit is None:
        return None, text.lstrip(" -"), []
    notes = [how[1].lower()] if how else []
    more, end = _more(text, end)
    rest = text[end:].strip()
    inside, after = _unit(rest, 0)
    if inside in CONTAINERS:  # 15 ounce can
        notes.append(rest[:after].strip(" -."))
        rest = rest[after:].strip()
    return unit, _OF.sub("", rest), notes + more


def _unit(text: str, start: int) -> tuple[str | None, int]:
    """The measure that begins here, by as many words as fit, and where it ends; something has to follow it."""
    words = _LETTERS.match(text, start)
    if words is not None:
        for last in range(MAX_WORDS, 0, -1):
            if words[last] is None:
                continue
            unit = measure(text[words.start(1) : words.end(last)])
            if unit is not None and text[words.end(last) :].strip(" .,-"):
                return unit, words.end(last)
    return None, start


def _more(text: str, end: int) -> tuple[list[str], int]:
    """The same in other measures, or something on top: 100 g/3½ oz, 1 cup plus 2 tablespoons."""
    notes: list[str] = []
    while (more := _MORE.match(text, end)) is not None:
        unit, after = _unit(text, more.end())
        if unit is None:
            break
        second = _NEXT.match(text, after)  # 2 lb 4 oz
        following = _unit(text, second.end()) if second else (None, after)
        after = following[1] if following[0] is not None else after
        amount = text[more.start(2) : after].strip()
        notes.append(amount if more[1] == "/" else f"plus {amount}")
        end = after
    return notes, end


def _vague(text: str) -> tuple[float | None, str | None, str, list[str]]:
    """A pinch of salt: one, though nobody says so."""
    unit, rest, notes = _measure_of(text)
    return (1.0, unit, rest, notes) if unit in VAGUE else (None, None, text, [])


def _behind(name: str) -> tuple[str | None, str]:
    """Garlic cloves are cloves of garlic."""
    what, _, last = name.rpartition(" ")
    unit = measure(last) if what and " " not in what else None
    return (unit, what) if unit in BEHIND else (None, name)


# Of what -----------------------------------------------------------------------------------------------------------


def _name(text: str) -> tuple[str, list[str]]:
    """What it is, and what is said about it in brackets, behind a comma, or as everybody says it."""
    notes = [note.strip() for note in _IN_BRACKETS.findall(text)]
    text = _IN_BRACKETS.sub("", text)
    notes += [note.lower() for note in _TO_TASTE.findall(text)]
    text = _TO_TASTE.sub("", text)
    name, comma, behind = text.partition(",")
    if comma and name.strip():
        notes.insert(0, behind.strip(" ,.*"))
        text = name
    return text.strip(" ,;.*"), [note for note in notes if note]
