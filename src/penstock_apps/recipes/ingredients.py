"""One line of a list of ingredients: how much, of what measure, of what. The line itself is always kept.

What is not understood becomes the name, whole: a cook can read it, and nothing was lost.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction


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


_UNITS = {
    "teaspoon": ("teaspoon", "teaspoons", "tsp", "tsps", "tsp."),
    "tablespoon": ("tablespoon", "tablespoons", "tbsp", "tbsps", "tbs", "tbl", "tblsp"),
    "cup": ("cup", "cups"),
    "fluid ounce": ("fluid ounce", "fluid ounces", "fl oz", "fl. oz", "floz"),
    "ounce": ("ounce", "ounces", "oz"),
    "pound": ("pound", "pounds", "lb", "lbs"),
    "pint": ("pint", "pints", "pt"),
    "quart": ("quart", "quarts", "qt", "qts"),
    "gallon": ("gallon", "gallons", "gal"),
    "milligram": ("milligram", "milligrams", "mg"),
    "gram": ("gram", "grams", "gramme", "grammes", "g", "gr"),
    "kilogram": ("kilogram", "kilograms", "kilo", "kilos", "kg", "kgs"),
    "millilitre": ("millilitre", "millilitres", "milliliter", "milliliters", "ml"),
    "centilitre": ("centilitre", "centilitres", "centiliter", "centiliters", "cl"),
    "decilitre": ("decilitre", "decilitres", "deciliter", "deciliters", "dl"),
    "litre": ("litre", "litres", "liter", "liters", "l"),
    "centimetre": ("centimetre", "centimetres", "centimeter", "centimeters", "cm"),
    "inch": ("inch", "inches"),
    "pinch": ("pinch", "pinches"),
    "dash": ("dash", "dashes"),
    "drop": ("drop", "drops"),
    "splash": ("splash", "splashes"),
    "drizzle": ("drizzle", "drizzles"),
    "knob": ("knob", "knobs"),
    "handful": ("handful", "handfuls"),
    "bunch": ("bunch", "bunches"),
    "sprig": ("sprig", "sprigs"),
    "stalk": ("stalk", "stalks"),
    "stick": ("stick", "sticks"),
    "clove": ("clove", "cloves"),
    "head": ("head", "heads"),
    "slice": ("slice", "slices"),
    "piece": ("piece", "pieces"),
    "sheet": ("sheet", "sheets"),
    "can": ("can", "cans"),
    "tin": ("tin", "tins"),
    "jar": ("jar", "jars"),
    "bottle": ("bottle", "bottles"),
    "package": ("package", "packages", "pkg", "pkgs", "packet", "packets", "pack", "packs"),
    "bag": ("bag", "bags"),
    "box": ("box", "boxes"),
    "envelope": ("envelope", "envelopes"),
    "container": ("container", "containers"),
    "scoop": ("scoop", "scoops"),
    "leaf": ("leaf", "leaves"),
    "rasher": ("rasher", "rashers"),
    "fillet": ("fillet", "fillets"),
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
# These letters mean different things in capitals and in small: a T is three times a t.
_CASED = {"T": "tablespoon", "Tb": "tablespoon", "Tbs": "tablespoon", "t": "teaspoon", "c": "cup", "C": "cup"}
_WORDS: dict[str, int | Fraction] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "half": Fraction(1, 2), "quarter": Fraction(1, 4),
    "dozen": 12,
}  # fmt: skip
_SLASHES = str.maketrans({"⁄": "/", "∕": "/", "–": "-", "—": "-", "−": "-", "‑": "-", "\u00a0": " ", "×": "x"})
_NUMBER = r"\d+\s+\d+\s*/\s*\d+|\d+\s*/\s*\d+|\d+(?:[.,]\d+)?|\.\d+"
_AMOUNT = re.compile(rf"(?P<first>{_NUMBER})(?:\s*(?:-|to|or|bis)\s*(?P<last>{_NUMBER}))?(?!\d)", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:about|approximately|approx\.?|around|circa|ca\.?|roughly|~|scant|heaping|heaped|generous)\s+", re.I
)
_BULLET = re.compile(r"^[\s•·▢☐◦\-*–—]+(?=\S)")
_IN_BRACKETS = re.compile(r"\s*\(([^()]*)\)")
_OF = re.compile(r"^of\s+(?:the\s+|a\s+)?", re.IGNORECASE)
_TO_TASTE = re.compile(r",?\s*\b(to taste|as needed|as required|for serving|to serve|for garnish|optional)\b\.?", re.I)
_LONGEST = 1_000


def understood(line: str) -> Ingredient:
    """What one line says.

    >>> one = understood("1 ½ cups flour, sifted")
    >>> one.quantity, one.unit, one.name, one.note
    (1.5, 'cup', 'flour', 'sifted')
    >>> understood("2-3 cloves garlic").quantity_to
    3.0
    >>> understood("Salt, to taste").note
    'to taste'
    """
    text = " ".join(line.split())[:_LONGEST]
    rest = _plain(text)
    rest = _BULLET.sub("", rest)
    quantity, quantity_to, rest = _amount(_ABOUT.sub("", rest, count=1) if _ABOUT.match(rest) else rest)
    unit, rest = _unit(rest, counted=quantity is not None)
    name, note = _name(rest)
    if not name:
        return Ingredient(text, text)
    return Ingredient(text, name, quantity, quantity_to, unit, note)


def _plain(text: str) -> str:
    """Fractions that are one character become three: ``1½`` is ``1 1/2``."""
    if text.isascii():
        return text.strip()
    parts: list[str] = []
    for one in text:
        if unicodedata.category(one) == "No" and "fraction" in unicodedata.name(one, "").lower():
            if parts and parts[-1][-1:].isdigit():
                parts.append(" ")
            parts.append(unicodedata.normalize("NFKC", one))
        else:
            parts.append(one)
    return "".join(parts).translate(_SLASHES).strip()


def _amount(text: str) -> tuple[float | None, float | None, str]:
    found = _AMOUNT.match(text)
    if found is not None:
        first, last = _value(found["first"]), _value(found["last"])
        if first is None:
            return None, None, text
        rest = text[found.end() :]
        times = re.match(r"\s*x\s*(?=\d)", rest, re.IGNORECASE)  # 2 x 400 g tins: the note has the size
        return first, last, rest[times.end() :] if times else rest.lstrip(" -")
    word, _, rest = text.partition(" ")
    if word.lower() in _WORDS and rest:
        number = Fraction(_WORDS[word.lower()])
        following, _, behind = rest.partition(" ")
        if following.lower() == "dozen" and behind:
            return float(number * 12), None, behind
        if word.lower() in ("a", "an") and _unit(rest, counted=True)[0] is None:
            return None, None, text
        return float(number), None, _OF.sub("", rest) if word.lower() in ("half", "quarter", "dozen") else rest
    return None, None, text


def _value(text: str | None) -> float | None:
    """A number as people write it; a fraction by nothing is none."""
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 10:  # most are, and a fraction takes a while to make
        return float(text)
    try:
        whole, _, fraction = text.strip().rpartition(" ") if re.search(r"\d\s+\d", text) else ("", "", text)
        fraction = re.sub(r"\s", "", fraction).replace(",", ".")
        return round(float((Fraction(whole) if whole else 0) + Fraction(fraction)), 4)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _unit(text: str, *, counted: bool) -> tuple[str | None, str]:
    """The measure a text begins with; the longest that fits."""
    if not counted:
        return None, text
    words = text.split(" ", 2)
    for size in (2, 1):
        if len(words) < size:
            continue
        said = " ".join(words[:size])
        rest = " ".join(words[size:])
        unit = _CASED.get(said.rstrip(".")) or _UNIT_OF.get(said.lower().rstrip(".,"))
        if unit is not None and rest.strip():
            return unit, _OF.sub("", rest)
    joined = re.match(r"([a-zA-Z]{1,2})\b\.?\s+(?=\S)", text)  # 200g flour has no blank to split at
    if joined is not None and joined[1].lower() in _UNIT_OF:
        return _UNIT_OF[joined[1].lower()], _OF.sub("", text[joined.end() :])
    return None, text


def _name(text: str) -> tuple[str, str | None]:
    """What it is, and what is said about it in brackets, behind a comma, or as everybody says it."""
    notes = [one.strip() for one in _IN_BRACKETS.findall(text) if one.strip()]
    text = _IN_BRACKETS.sub("", text)
    notes += [one.lower() for one in _TO_TASTE.findall(text)]
    text = _TO_TASTE.sub("", text)
    name, comma, behind = text.partition(",")
    if comma and name.strip():
        notes.insert(0, behind.strip(" ,."))
        text = name
    return _OF.sub("", text.strip(" ,;.")), ", ".join(one for one in notes if one) or None
