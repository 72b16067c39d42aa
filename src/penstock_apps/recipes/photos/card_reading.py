"""From the text that was seen in pictures to a recipe, with warnings where it may be wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock_apps.plurals import pluralize
from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.reading import Reading
from penstock_apps.recipes.parsing.recipe import FoundRecipe, ParsedRecipe
from penstock_apps.recipes.parsing.sections import read_ingredients
from penstock_apps.recipes.parsing.texts import lines as lines_without_numbers
from penstock_apps.recipes.photos.card_layout import CardLayout, lay_out
from penstock_apps.recipes.photos.reading_order import in_reading_order
from penstock_apps.recipes.photos.text_lines import SeenText, TextLine

STRATEGY = "photo"
WITHOUT_TITLE = "Recipe without a title"
_TITLE_GUESSED = "The title is a guess: it is the first line."
_NO_TITLE = "No title was found: give it one."
_SECTIONS_GUESSED = "There are no headings: which lines are ingredients, and which are steps, is a guess."
_MAX_LINES = 500
_LONGEST_TITLE = 500
_LONGEST_TEXT = 10_000
_MAX_CHARACTERS = 24_000
_UNSURE = 0.85
_EXAMPLES = 3
_NEW_PARAGRAPH = 0.75
"""A space of so many heights of a line begins a new step."""
_STEP_BEGINS = re.compile(r"(?:step\s*+)?\d{1,2}\s*+[.):](?:\s|$)|step\s++\d{1,2}\b|[•·▪●*]\s", re.IGNORECASE)
_BULLET = re.compile(r"^[•·▪●*]\s*+")
_HYPHENS = ("-", "\u00ad", "\u2010")
_SENTENCE_ENDS = (".", "!", "?")


@dataclass(frozen=True, slots=True)
class SeenCard:
    """What was seen in the pictures of one page or card."""

    pictures: tuple[tuple[SeenText, ...], ...]
    title_hint: str | None = None


def read_card(card: SeenCard) -> Reading:
    """What the pictures say. Strangers wrote it: this runs in a process with limits."""
    pages = [in_reading_order(pieces) for pieces in card.pictures]
    layout = lay_out(pages)
    everything = [line for page in pages for line in page]
    words = "\n".join(line.text for line in everything)[:_MAX_CHARACTERS]
    if not layout.ingredients and not layout.steps:
        return Reading(None, words)
    title = card.title_hint or _join_lines(layout.title)[:_LONGEST_TITLE]
    recipe = ParsedRecipe(
        title=title or WITHOUT_TITLE,
        description=_join_lines(layout.description)[:_LONGEST_TEXT] or None,
        ingredients=read_ingredients(_ingredient_lines(layout.ingredients)[:_MAX_LINES]),
        steps=_steps(layout.steps)[:_MAX_LINES],
        servings=layout.servings,
        yields=layout.yields,
        prep_minutes=layout.times.get("prep_minutes"),
        cook_minutes=layout.times.get("cook_minutes"),
        total_minutes=layout.times.get("total_minutes"),
    )
    warnings = (*_picture_warnings(card), *_unsure(everything), *_guesses(layout, title, card.title_hint))
    is_guess = not title or not layout.has_headings
    return Reading(FoundRecipe(recipe, STRATEGY, warnings=warnings), words, is_guess=is_guess)


def _picture_warnings(card: SeenCard) -> list[str]:
    return [f"No text was found in picture {number}." for number, pieces in enumerate(card.pictures, 1) if not pieces]


def _unsure(lines: Sequence[TextLine]) -> list[str]:
    """Which lines were hard to read: the first of them in their words."""
    unsure = [line.text for line in lines if line.confidence < _UNSURE]
    if not unsure:
        return []
    examples = ", ".join(f"“{text[:60]}”" for text in unsure[:_EXAMPLES])
    more = f" and {len(unsure) - _EXAMPLES} more" if len(unsure) > _EXAMPLES else ""
    return [f"{pluralize(len(unsure), 'line')} could not be read surely: {examples}{more}."]


def _guesses(layout: CardLayout, title: str, hint: str | None) -> list[str]:
    warnings = []
    if not title:
        warnings.append(_NO_TITLE)
    elif hint is None and not layout.title_is_clear:
        warnings.append(_TITLE_GUESSED)
    if not layout.has_headings:
        warnings.append(_SECTIONS_GUESSED)
    return warnings


def _ingredient_lines(lines: Sequence[TextLine]) -> list[str]:
    """Lines that go on in the next one are one: those begin small, and have no amount."""
    texts: list[str] = []
    for line in lines:
        goes_on = texts and line.text[:1].islower() and line.gap < _NEW_PARAGRAPH
        if goes_on and read_ingredient(line.text).quantity is None and read_ingredient(texts[-1]).quantity is not None:
            texts[-1] = _put_together(texts[-1], line.text)
        else:
            texts.append(line.text)
    return texts


def _steps(lines: Sequence[TextLine]) -> list[str]:
    """Steps by their numbers; else by the space between them; else by lines that end with their sentence."""
    has_numbers = sum(_STEP_BEGINS.match(line.text) is not None for line in lines) > 1
    has_paragraphs = any(line.gap >= _NEW_PARAGRAPH for line in lines[1:])
    steps: list[str] = []
    for line in lines:
        if not steps:
            begins = True
        elif has_numbers:
            begins = _STEP_BEGINS.match(line.text) is not None
        elif has_paragraphs:
            begins = line.gap >= _NEW_PARAGRAPH
        else:
            begins = steps[-1].endswith(_SENTENCE_ENDS)
        if begins:
            steps.append(line.text)
        else:
            steps[-1] = _put_together(steps[-1], line.text)
    return [text for step in steps for text in lines_without_numbers(_BULLET.sub("", step)) if text]


def _join_lines(lines: Sequence[TextLine]) -> str:
    text = ""
    for line in lines:
        text = _put_together(text, line.text)
    return text


def _put_together(text: str, more: str) -> str:
    """Two lines as one; a word that was divided at the end of the first is whole again."""
    if text.endswith(_HYPHENS) and more[:1].islower() and text[-2:-1].isalpha():
        return text[:-1] + more
    return f"{text} {more}".strip()
