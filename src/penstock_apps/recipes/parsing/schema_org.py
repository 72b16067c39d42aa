"""A recipe in schema.org's words, wherever on the page they were: the same reading for JSON-LD, microdata and RDFa.

Pages are written by thousands of programs. Every property may be missing, a string, a list, an object, or a list of
lists; nothing here trusts more than the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urljoin

from penstock.lifecycle import JSON
from penstock_apps.recipes.limits import MAX_LINES
from penstock_apps.recipes.parsing.durations import minutes
from penstock_apps.recipes.parsing.ingredient_lists import ingredient_lines
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.repetitions import said_once, steps_said_once
from penstock_apps.recipes.parsing.sections import Part, is_method, read_ingredients, split_steps
from penstock_apps.recipes.parsing.texts import lines, plain

Node = dict[str, JSON]
_DEEPEST = 12
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
    steps, step_sections = split_steps(
        steps_said_once(list(_steps(node.get("recipeInstructions") or node.get("instructions"))))
    )
    all_ingredients = said_once(_ingredients(node))
    return ParsedRecipe(
        title=(_text(node.get("name")) or _text(node.get("headline")) or "")[:_LONGEST_TITLE],
        description=_text(node.get("description")),
        ingredients=read_ingredients(all_ingredients[:MAX_LINES]),
        steps=steps[:MAX_LINES],
        step_sections=step_sections[:MAX_LINES],
        servings=servings(yields),
        yields=max(yields, key=len, default=None),
        prep_minutes=_minutes(node.get("prepTime")),
        cook_minutes=_minutes(node.get("cookTime")),
        total_minutes=_minutes(node.get("totalTime")),
        image_url=_image(node.get("image"), address),
        tags=_tags(node),
        author=_text(node.get("author")),
        is_cut=max(len(all_ingredients), len(steps)) > MAX_LINES,
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
    return ingredient_lines(list(_ingredient_texts(value)))


def _ingredient_texts(value: JSON, depth: int = 0) -> Iterator[str]:
    """The texts of ingredients: of things also their amounts, and of lists of them what they are for."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for part in value:
            yield from _ingredient_texts(part, depth + 1)
    elif isinstance(value, dict):
        name = _text(value.get("name"))
        inner = value.get("itemListElement") or value.get("item")
        if inner:
            yield from (f"{name}:",) if name else ()
            yield from _ingredient_texts(inner, depth + 1)
        elif name:
            yield " ".join(text for text in (*_amount_of(value), name) if text)
        else:
            yield from _strings(value)
    else:
        yield from _strings(value)


def _amount_of(thing: Node, depth: int = 0) -> Sequence[str]:
    """How much of a thing: as schema.org says it, and as programs do that have not read it."""
    for name in ("requiredQuantity", "amount", "quantity", "value"):
        value = thing.get(name)
        if isinstance(value, dict) and depth < _DEEPEST:
            return _amount_of(value, depth + 1)
        if (text := _text(value)) is not None:
            unit = _text(thing.get("unitText") or thing.get("unit"))
            return (text, unit) if unit else (text,)
    return ()


def _steps(value: JSON, section: str | None = None, depth: int = 0, *, among_others: bool = False) -> Iterator[Part]:
    """Steps in order: texts, HowToStep, HowToSection and lists of them, as deep as they go."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        # A text alone has all the steps, a line each; one among others is a step, wherever its lines end.
        for line in lines(value if "<" in value or not among_others else " ".join(value.split())):
            yield line, section
    elif isinstance(value, list):
        for part in value:
            yield from _steps(part, section, depth + 1, among_others=among_others or len(value) > 1)
    elif isinstance(value, dict):
        inner = value.get("itemListElement") or value.get("steps") or value.get("item")
        if inner and any("HowToSection" in name for name in _strings(value.get("@type"))):
            name = _text(value.get("name"))
            section = section if name is None or is_method(name) else name.rstrip(" :") or None
        content = inner or _string(value.get("text")) or _string(value.get("name"))
        yield from _steps(content, section, depth + 1, among_others=among_others)


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
    return minutes(plain(value) if isinstance(value, str) else value)


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
