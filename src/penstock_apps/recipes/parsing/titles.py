"""Titles of recipes, without what sites write behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock_apps.recipes.parsing.sections import key_of

_WORD = r"(?:recipes?|recept|rezepte?|recetas?|recettes?|ricett[ae]|receitas?|opskrift|oppskrift|przepis|resept|рецепт)"
# Titles are plain: they have single blanks, and none at their ends.
_BEHIND_A_DASH = re.compile(rf"[|–—·:-] ?(?:the |das )?{_WORD}$", re.IGNORECASE)
_BEHIND = re.compile(rf" {_WORD}$", re.IGNORECASE)
_PARTS = re.compile(r" [|–—·»-] | ?\| ?")


def tidy_title(title: str, site_names: Sequence[str]) -> str:
    """A title without the site's name, or the word recipe, behind a dash.

    >>> tidy_title("Soup | Kitchen", ["Kitchen"]), tidy_title("Soup – Recept", []), tidy_title("Soup - hot", [])
    ('Soup', 'Soup', 'Soup - hot')
    """
    names = {key_of(name) for name in site_names} - {""}
    while True:
        last = max(_PARTS.finditer(title), key=lambda part: part.start(), default=None)
        shorter = _BEHIND_A_DASH.sub("", title)
        if last is not None and last.start() and key_of(title[last.end() :]) in names:
            shorter = title[: last.start()]
        if shorter == title or not shorter.strip():
            return title
        title = shorter.strip()


def without_recipe(title: str) -> str:
    """A page's title without the word recipe at its end: pages are called so, dishes are not.

    >>> without_recipe("Chilli con carne recipe"), without_recipe("Recipe")
    ('Chilli con carne', 'Recipe')
    """
    return _BEHIND.sub("", title).strip() or title
