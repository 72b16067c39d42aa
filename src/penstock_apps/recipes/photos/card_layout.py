"""The lines of a card or a page by what they are: title, description, ingredients, steps.

Headings say it where there are any. Else lines that begin with an amount are ingredients, and what follows them are
steps; then the result is a guess, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from penstock_apps.recipes.parsing.durations import minutes
from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.schema_org import servings
from penstock_apps.recipes.parsing.sections import is_general, is_method
from penstock_apps.recipes.photos.text_lines import TextLine

_LONGEST_HEADING = 40
_LONGEST_TITLE_LINE = 80
_MOST_TITLE_LINES = 3
_LONGEST_FACT = 80
_FEWEST_INGREDIENTS = 2
_MOST_WORDS_OF_AN_INGREDIENT = 9
_SAME_SIZE = 0.8
_CLEARLY_LARGER = 1.2
_STEP_NUMBER = re.compile(r"(?:step\s*+)?\d{1,2}\s*+[.):](?=\s|$)|step\s++\d{1,2}\b", re.IGNORECASE)
_YIELDS = re.compile(
    r"(?:serves|servings?|makes|yields?|für|ergibt|portionen|pour|para|per|voor|personen)\b[:\s]*+\d"
    r"|\d{1,3}\s*+(?:-\s*+\d{1,3}\s*+)?(?:servings?|people|portionen|personen|stück|personnes|parts|porciones|personas"
    r"|porzioni|persone|pieces|cookies)\b",
    re.IGNORECASE,
)
_TIMES = (
    ("prep_minutes", re.compile(r"(?:prep(?:aration|aring)?(?: time)?|vorbereitung(?:szeit)?|arbeitszeit)\b", re.I)),
    ("cook_minutes", re.compile(r"(?:cook(?:ing)?(?: time)?|bak(?:e|ing)(?: time)?|koch(?:zeit)?|backzeit)\b", re.I)),
    ("total_minutes", re.compile(r"(?:total(?: time)?|ready in|time|gesamt(?:zeit)?|zubereitungszeit|dauer)\b", re.I)),
)


@dataclass(slots=True)
class CardLayout:
    """The lines of all pictures, by what they are."""

    title: list[TextLine] = field(default_factory=list)
    description: list[TextLine] = field(default_factory=list)
    ingredients: list[TextLine] = field(default_factory=list)
    steps: list[TextLine] = field(default_factory=list)
    yields: str | None = None
    times: dict[str, int] = field(default_factory=dict)
    title_is_clear: bool = False
    """Was it the largest text above all others?"""
    has_headings: bool = False

    @property
    def servings(self) -> int | None:
        """For how many it is."""
        return None if self.yields is None else servings([self.yields])


def lay_out(pages: Sequence[Sequence[TextLine]]) -> CardLayout:
    """What the lines of some pictures are, which are one page or card."""
    layout = CardLayout()
    lines = [line for page in pages for line in page]
    head, ingredients, steps = _by_headings(lines)
    if ingredients or steps:
        layout.has_headings = True
    else:
        head, ingredients, steps = _by_amounts(lines)
    layout.ingredients = [line for line in ingredients if not _take_fact(layout, line)]
    layout.steps = steps
    _read_head(layout, head)
    return layout


def _by_headings(lines: Sequence[TextLine]) -> tuple[list[TextLine], list[TextLine], list[TextLine]]:
    head: list[TextLine] = []
    ingredients: list[TextLine] = []
    steps: list[TextLine] = []
    goal = head
    for line in lines:
        if _is_heading(line.text) and is_general(line.text):
            goal = ingredients
            head += [TextLine(rest, line.confidence, 0.0)] if (rest := _yields_in(line.text)) else []
        elif _is_heading(line.text) and is_method(line.text):
            goal = steps
        else:
            goal.append(line)
    return head, ingredients, steps


def _is_heading(text: str) -> bool:
    """Short, and not a time: "Preparation: 20 min" is no heading."""
    return len(text) <= _LONGEST_HEADING and minutes(text) is None and not text.rstrip().endswith((".", ","))


def _yields_in(text: str) -> str:
    """Of "Ingredients (serves 4)" the part that says for how many."""
    place = _YIELDS.search(text)
    return "" if place is None else text[place.start() :].strip(" ()")


def _by_amounts(lines: Sequence[TextLine]) -> tuple[list[TextLine], list[TextLine], list[TextLine]]:
    """The first lines that have amounts, up to the last of them, what stands before them, and what comes after."""
    places = [place for place, line in enumerate(lines) if _looks_like_an_ingredient(line.text)]
    if len(places) < _FEWEST_INGREDIENTS:
        return list(lines), [], []
    return list(lines[: places[0]]), list(lines[places[0] : places[-1] + 1]), list(lines[places[-1] + 1 :])


def _looks_like_an_ingredient(text: str) -> bool:
    if _STEP_NUMBER.match(text) or _is_fact(text) or text.endswith((".", "!", ":")):
        return False
    return len(text.split()) <= _MOST_WORDS_OF_AN_INGREDIENT and read_ingredient(text).quantity is not None


def _is_fact(text: str) -> bool:
    return len(text) <= _LONGEST_FACT and (_YIELDS.search(text) is not None or _time_in(text) is not None)


def _time_in(text: str) -> tuple[str, int] | None:
    """Which time a line tells, and how long it is."""
    if len(text) > _LONGEST_FACT:
        return None
    for name, says in _TIMES:
        label = says.match(text)
        if label is not None and (time := minutes(text[label.end() :].strip(" :-–"))) is not None:
            return name, time
    return None


def _take_fact(layout: CardLayout, line: TextLine) -> bool:
    """Keep what a line says of servings and times, if that is what it does."""
    if len(line.text) > _LONGEST_FACT:
        return False
    time = _time_in(line.text)
    if time is not None:
        layout.times.setdefault(*time)
        return True
    if _YIELDS.search(line.text) is None:
        return False
    if layout.yields is None:
        layout.yields = line.text.strip(" ()")
    return True


def _read_head(layout: CardLayout, head: Sequence[TextLine]) -> None:
    """The title is the largest text of what stands above; the rest is a description."""
    lines = [line for line in head if not _take_fact(layout, line)]
    candidates = [line for line in lines if len(line.text) <= _LONGEST_TITLE_LINE and any(map(str.isalpha, line.text))]
    if not candidates:
        layout.description = lines
        return
    largest = max(line.height for line in candidates)
    body = [line.height for line in (*layout.ingredients, *layout.steps)]
    layout.title_is_clear = bool(body) and largest >= _CLEARLY_LARGER * median(body)
    if layout.title_is_clear:
        first = next(line for line in candidates if line.height == largest)
    else:
        first = candidates[0]
    place = lines.index(first)
    # It goes over the lines of its size before and behind it.
    begin, end = place, place + 1
    while layout.title_is_clear and begin > 0 and _belongs(lines[begin - 1], largest):
        begin -= 1
    while layout.title_is_clear and end < len(lines) and _belongs(lines[end], largest):
        end += 1
    layout.title = list(lines[begin : min(end, begin + _MOST_TITLE_LINES)])
    layout.description = [*lines[:begin], *lines[begin + len(layout.title) :]]


def _belongs(line: TextLine, height: float) -> bool:
    return line.height >= _SAME_SIZE * height and len(line.text) <= _LONGEST_TITLE_LINE
