"""One line of a list of ingredients: how much, of what measure, of what. The line itself is always kept.

What is not understood becomes the name, whole: a cook can read it, and nothing was lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from penstock_apps.recipes.parsing.measures import BEHIND, CONTAINERS, MAX_WORDS, VAGUE, measure
from penstock_apps.recipes.parsing.numbers import NUMBER, TO, plain_characters, read_number
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
    section: str | None = None
    """What it is for: "For the sauce"."""

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
            "section": self.section,
        }


_WORDS: dict[str, int | Fraction] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "half": Fraction(1, 2), "quarter": Fraction(1, 4),
    "dozen": 12,
}  # fmt: skip
_AMOUNT = re.compile(rf"(?P<first>{NUMBER})(?:\s*+{TO}\s*+(?P<last>{NUMBER}))?(?!\d|[.,/]\d|\s*%)", re.IGNORECASE)
_THOUSANDTHS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_FINE = frozenset({"gram", "milligram", "millilitre"})
_COARSE = frozenset({"kilogram", "litre"})
"""Nobody counts thousandths of a gram, nor takes thousands of kilograms: 1.500 g and 1,500 kg are the same."""
_ABOUT = re.compile(r"(?:about|approximately|approx\.?|around|circa|ca\.?|roughly|~)\s++", re.I)
_WORD = r"[^\W\d_]++\.?"
_LETTERS = re.compile(rf"\s*+(?:-\s*+)?({_WORD})(?:\s++({_WORD}))?(?:\s++({_WORD}))?")
_HOW = re.compile(r"(heaped|heaping|rounded|level|scant|generous|good|big|large|small)\s++", re.I)
_TIMES = re.compile(r"\s*+x\s*+(?=\d)", re.I)
_IN_FRONT = re.compile(rf"\(([^()]++)\)\s*+|((?:{NUMBER})(?:\s*+(?:-|to)\s*+(?:{NUMBER}))?\s*+(?:-\s*+)?{_WORD})\s++")
_MORE = re.compile(rf"\s*+(/|\+|plus\b|and\b)\s*+((?:{NUMBER})\s*+)", re.I)
_NEXT = re.compile(rf"\s*+(?:{NUMBER})\s*+")
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
    rest = _BULLET.sub("", plain_characters(text))
    about = _ABOUT.match(rest)
    amount = _amount(rest[about.end() :] if about else rest)
    if amount.first is None:
        quantity, unit, rest, notes = _vague(amount.rest)
        amount = amount._replace(first=quantity)
    else:
        unit, rest, notes = _measure_of(amount.rest)
        amount = _in_its_language(amount, unit)
    name, remarks = _name(rest)
    if not name:
        return Ingredient(text, text)
    if unit is None and amount.first is not None:
        unit, name = _behind(name)
    return Ingredient(text, name, amount.first, amount.last, unit, ", ".join((*remarks, *notes)) or None)


# How much ----------------------------------------------------------------------------------------------------------


class _Amount(NamedTuple):
    """How much, as it is written too, and what stands behind it."""

    first: float | None
    last: float | None
    rest: str
    notation: tuple[str, ...] = ()


def _amount(text: str) -> _Amount:
    amount = _AMOUNT.match(text)
    if amount is None:
        return _in_words(text)
    first, last = read_number(amount["first"]), read_number(amount["last"])
    if first is None:
        return _Amount(None, None, text)
    rest = text[amount.end() :]
    if last is not None and last < 1 <= first:  # 1 - 1/2 is one and a half
        first, last = first + last, None
    dozens, behind = _dozens(rest)
    if dozens:
        return _Amount(first * 12, last and last * 12, behind)
    rest = _PART_OF.sub("", rest.lstrip()) if first < 1 else rest
    return _Amount(first, last, rest, tuple(part for part in amount.groups() if part))


def _in_its_language(amount: _Amount, unit: str | None) -> _Amount:
    """What a point or a comma before three digits means: the measure says which language it is."""
    if not amount.notation or not all(map(_THOUSANDTHS.fullmatch, amount.notation)):
        return amount
    if unit in _FINE:
        factor = 1_000.0 if "." in amount.notation[0] else 1.0
    elif unit in _COARSE:
        factor = 0.001 if "," in amount.notation[0] else 1.0
    else:
        return amount
    return amount._replace(first=amount.first and amount.first * factor, last=amount.last and amount.last * factor)


def _in_words(text: str) -> _Amount:
    word, _, rest = text.partition(" ")
    numeral = word.lower()
    if numeral not in _WORDS or not rest:
        return _Amount(None, None, text)
    number = float(_WORDS[numeral])
    dozens, behind = _dozens(f" {rest}")
    if dozens:
        return _Amount(number * 12, None, behind)
    if numeral in ("a", "an") and _measure_of(rest)[0] is None:
        return _Amount(None, None, text)
    return _Amount(number, None, _PART_OF.sub("", rest) if numeral in ("half", "quarter", "dozen") else rest)


def _dozens(rest: str) -> tuple[bool, str]:
    dozen = re.match(r"\s+dozen\s+(?=\S)", rest, re.IGNORECASE)
    return (True, rest[dozen.end() :]) if dozen else (False, rest)


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
