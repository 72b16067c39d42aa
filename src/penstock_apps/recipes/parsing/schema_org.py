"""A recipe in schema.org's words, wherever on the page they were: the same reading for JSON-LD, microdata and RDFa.

Pages are written by thousands of programs. Every property may be missing, a string, a list, an object, or a list of
lists; nothing here trusts more than the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin

from penstock.lifecycle import JSON
from penstock_apps.recipes.parsing.durations import minutes
from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.texts import lines, plain

Node = dict[str, JSON]
_DEEPEST = 12
_MAX_LINES = 500
_LONGEST_TITLE = 500
_LONGEST_TEXT = 10_000
_LARGEST = 1e15
_SERVES = re.compile(r"\d+")


def is_recipe(node: Node) -> bool:
    """Does a node say it is a recipe?"""
    return any(name.rpartition("/")[2].rpartition(":")[2].lower() == "recipe" for name in _strings(node.get("@type")))


def recipes_in(value: JSON, depth: int = 0) -> Iterator[Node]:
    """All recipes below a value, outer ones first."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for part in value:
            yield from recipes_in(part, depth + 1)
    elif isinstance(value, dict):
        if is_recipe(value):
            yield value
        else:
            for part in value.values():
                if isinstance(part, dict | list):
                    yield from recipes_in(part, depth + 1)


def read(node: Node, address: str) -> ParsedRecipe:
    """What a recipe's node says."""
    yields = _texts(node.get("recipeYield") or node.get("yield"))
    return ParsedRecipe(
        title=(_text(node.get("name")) or _text(node.get("headline")) or "")[:_LONGEST_TITLE],
        description=_text(node.get("description")),
        ingredients=[read_ingredient(line) for line in _ingredients(node)],
        steps=list(dict.fromkeys(_steps(node.get("recipeInstructions") or node.get("instructions"))))[:_MAX_LINES],
        servings=servings(yields),
        yields=max(yields, key=len, default=None),
        prep_minutes=_minutes(node.get("prepTime")),
        cook_minutes=_minutes(node.get("cookTime")),
        total_minutes=_minutes(node.get("totalTime")),
        image_url=_image(node.get("image"), address),
        tags=_tags(node),
        author=_text(node.get("author")),
    )


def servings(yields: list[str]) -> int | None:
    """How many it feeds, from the first text with a sensible number in it."""
    for text in yields:
        number = _SERVES.search(text)
        if number is not None and 0 < int(number[0][:6]) <= 1_000:
            return int(number[0][:6])
    return None


def _ingredients(node: Node) -> list[str]:
    value = node.get("recipeIngredient") or node.get("ingredients") or node.get("supply")
    texts = _strings(value)
    all_lines = [line for text in texts for line in (lines(text) if "\n" in text or "<" in text else [plain(text)])]
    return [line for line in all_lines if line][:_MAX_LINES]


def _steps(value: JSON, depth: int = 0, *, among_others: bool = False) -> Iterator[str]:
    """Steps in order: texts, HowToStep, HowToSection and lists of them, as deep as they go."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        # A text alone has all the steps, a line each; one among others is a step, wherever its lines end.
        yield from lines(value if "<" in value or not among_others else " ".join(value.split()))
    elif isinstance(value, list):
        for part in value:
            yield from _steps(part, depth + 1, among_others=among_others or len(value) > 1)
    elif isinstance(value, dict):
        inner = value.get("itemListElement") or value.get("steps") or value.get("item")
        content = inner or _string(value.get("text")) or _string(value.get("name"))
        yield from _steps(content, depth + 1, among_others=among_others)


def _tags(node: Node) -> list[str]:
    words = []
    for name in ("keywords", "recipeCategory", "recipeCuisine"):
        for text in _texts(node.get(name)):
            words += [word.strip() for word in text.split(",")]
    tags: dict[str, str] = {}
    for word in words:
        if 0 < len(word) <= 100:
            tags.setdefault(word.lower(), word)
    return list(tags.values())[:50]


def _image(value: JSON, address: str, depth: int = 0) -> str | None:
    """The first address of a picture."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, str) and value.strip():
        url = _join(address, value.strip())
        return url if url.startswith(("http://", "https://")) else None
    if isinstance(value, dict):
        return _image(value.get("url") or value.get("contentUrl") or value.get("@id"), address, depth + 1)
    if isinstance(value, list):
        return next((image for part in value if (image := _image(part, address, depth + 1))), None)
    return None


def _join(address: str, relative: str) -> str:
    try:
        return urljoin(address, relative)[:2048]
    except ValueError:
        return ""


def _minutes(value: JSON, depth: int = 0) -> int | None:
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        value = value.get("maxValue") or value.get("minValue") or value.get("@value") or value.get("value")
    if isinstance(value, list):
        return next((number for part in value if (number := _minutes(part, depth + 1)) is not None), None)
    return minutes(value)


def _text(value: JSON) -> str | None:
    """The first text in a value, plain."""
    return next(iter(_texts(value)), None)


def _texts(value: JSON) -> list[str]:
    return [line for text in _strings(value) if (line := plain(text)[:_LONGEST_TEXT])]


def _string(value: JSON) -> str | None:
    return next(iter(_strings(value)), None)


def _strings(value: JSON, depth: int = 0) -> list[str]:
    """All texts in a value, as they are; of an object its name or its text."""
    if depth > _DEEPEST or value is None or isinstance(value, bool):
        return []
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, int | float):
        return [f"{value:g}"] if abs(value) < _LARGEST else []
    if isinstance(value, list):
        return [text for part in value for text in _strings(part, depth + 1)]
    if isinstance(value, dict):
        for name in ("@value", "name", "text", "value"):
            if texts := _strings(value.get(name), depth + 1):
                return texts
    return []
