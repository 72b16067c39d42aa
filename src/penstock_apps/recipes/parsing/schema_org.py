"""A recipe in schema.org's words, wherever on the page they were: the same reading for JSON-LD, microdata and RDFa.

Pages are written by thousands of programs. Every property may be missing, a string, a list, an object, or a list of
lists; nothing here trusts more than the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

from penstock_apps.recipes.parsing.durations import minutes
from penstock_apps.recipes.parsing.ingredients import understood
from penstock_apps.recipes.parsing.parsed import ParsedRecipe
from penstock_apps.recipes.parsing.texts import lines, plain

Node = dict[str, Any]
_DEEPEST = 12
_MOST_LINES = 500
_LONGEST_TITLE = 500
_LONGEST_TEXT = 10_000
_SERVES = re.compile(r"\d+")


def is_recipe(node: Node) -> bool:
    """Does a node say it is a recipe?"""
    return any(one.rpartition("/")[2].rpartition(":")[2].lower() == "recipe" for one in _strings(node.get("@type")))


def recipes_in(value: Any, depth: int = 0) -> Iterator[Node]:
    """All recipes below a value, outer ones first."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for one in value:
            yield from recipes_in(one, depth + 1)
    elif isinstance(value, dict):
        if is_recipe(value):
            yield value
        else:
            for one in value.values():
                if isinstance(one, dict | list):
                    yield from recipes_in(one, depth + 1)


def read(node: Node, address: str) -> ParsedRecipe:
    """What a recipe's node says."""
    yields = _texts(node.get("recipeYield") or node.get("yield"))
    return ParsedRecipe(
        title=(_text(node.get("name")) or _text(node.get("headline")) or "")[:_LONGEST_TITLE],
        description=_text(node.get("description")),
        ingredients=[understood(one) for one in _ingredients(node)],
        steps=list(dict.fromkeys(_steps(node.get("recipeInstructions") or node.get("instructions"))))[:_MOST_LINES],
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
        found = _SERVES.search(text)
        if found is not None and 0 < int(found[0][:6]) <= 1_000:
            return int(found[0][:6])
    return None


def _ingredients(node: Node) -> list[str]:
    given = node.get("recipeIngredient") or node.get("ingredients") or node.get("supply")
    found = [one for text in _strings(given) for one in (lines(text) if "\n" in text or "<" in text else [plain(text)])]
    return [one for one in found if one][:_MOST_LINES]


def _steps(value: Any, depth: int = 0, *, among_others: bool = False) -> Iterator[str]:
    """Steps in order: texts, HowToStep, HowToSection and lists of them, as deep as they go."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        # A text alone has all the steps, a line each; one among others is a step, wherever its lines end.
        yield from lines(value if "<" in value or not among_others else " ".join(value.split()))
    elif isinstance(value, list):
        for one in value:
            yield from _steps(one, depth + 1, among_others=among_others or len(value) > 1)
    elif isinstance(value, dict):
        inner = value.get("itemListElement") or value.get("steps") or value.get("item")
        told = inner or _string(value.get("text")) or _string(value.get("name"))
        yield from _steps(told, depth + 1, among_others=among_others)


def _tags(node: Node) -> list[str]:
    words = []
    for name in ("keywords", "recipeCategory", "recipeCuisine"):
        for text in _texts(node.get(name)):
            words += [one.strip() for one in text.split(",")]
    seen: dict[str, str] = {}
    for one in words:
        if 0 < len(one) <= 100:
            seen.setdefault(one.lower(), one)
    return list(seen.values())[:50]


def _image(value: Any, address: str, depth: int = 0) -> str | None:
    """The first address of a picture."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, str) and value.strip():
        joined = _joined(address, value.strip())
        return joined if joined.startswith(("http://", "https://")) else None
    if isinstance(value, dict):
        return _image(value.get("url") or value.get("contentUrl") or value.get("@id"), address, depth + 1)
    if isinstance(value, list):
        return next((found for one in value if (found := _image(one, address, depth + 1))), None)
    return None


def _joined(address: str, relative: str) -> str:
    try:
        return urljoin(address, relative)[:2048]
    except ValueError:
        return ""


def _minutes(value: Any) -> int | None:
    if isinstance(value, dict):
        value = value.get("maxValue") or value.get("minValue") or value.get("@value") or value.get("value")
    if isinstance(value, list):
        return next((found for one in value if (found := _minutes(one)) is not None), None)
    return minutes(value)


def _text(value: Any) -> str | None:
    """The first text in a value, plain."""
    return next(iter(_texts(value)), None)


def _texts(value: Any) -> list[str]:
    return [one for text in _strings(value) if (one := plain(text)[:_LONGEST_TEXT])]


def _string(value: Any) -> str | None:
    return next(iter(_strings(value)), None)


def _strings(value: Any, depth: int = 0) -> list[str]:
    """All texts in a value, as they are; of an object its name or its text."""
    if depth > _DEEPEST or value is None or isinstance(value, bool):
        return []
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, int | float):
        return [f"{value:g}"]
    if isinstance(value, list):
        return [text for one in value for text in _strings(one, depth + 1)]
    if isinstance(value, dict):
        for name in ("@value", "name", "text", "value"):
            if found := _strings(value.get(name), depth + 1):
                return found
    return []
