"""The headings over the ingredients and over the steps, in the languages that recipes are written in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock_apps.recipes.parsing.ingredients import Ingredient, read_ingredient

_GENERAL = re.compile(
    r"(?:(?:the )?ingredients?|you(?:['’]| wi)ll need|what you need|zutaten(?:liste)?|das brauchst du|ingrédients?"
    r"|ingredientes|ingredienti|ingrediënten|benodigdheden|ingrediens(?:er|en)?|składniki)\b",
    re.IGNORECASE,
)
_METHOD = re.compile(
    r"(?:instructions?|directions?|method|preparation|steps?|how to (?:make|cook|bake|prepare)|zubereitung|anleitung"
    r"|so geht['’]?s|préparation|étapes?|preparación|elaboración|instrucciones|modo de preparo|preparo|preparazione"
    r"|procedimento|bereiding(?:swijze)?|fremgangsmåde|framgangsmåte|slik gjør du|tillagning|gör så här"
    r"|przygotowanie)\b",
    re.IGNORECASE,
)


def is_general(heading: str) -> bool:
    """Does a heading stand over all ingredients?"""
    return _GENERAL.match(heading.strip()) is not None


def is_method(heading: str) -> bool:
    """Does a heading stand over the steps?"""
    return _METHOD.match(heading.strip()) is not None


def read_ingredients(lines: Sequence[str]) -> list[Ingredient]:
    """Ingredients of their lines."""
    return [read_ingredient(line) for line in lines]
