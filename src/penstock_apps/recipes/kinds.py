"""Fetching and reading one page, in a process of its own: it knows the environment, and no database."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from penstock import ItemContext, storable_texts
from penstock.settings import read_settings
from penstock_apps.counting import counted

if TYPE_CHECKING:
    from penstock_apps.recipes.settings import RecipeSettings


def parse(item: ItemContext) -> dict[str, Any]:
    """The recipe of the page the job asks for."""
    # Loaded where pages are read: the command line and the server need neither.
    from penstock_apps.recipes.parsing.fetching import fetch
    from penstock_apps.recipes.parsing.reading import recipe_of

    params: Any = item.params
    settings = settings_of_this_process()
    page = fetch(params["url"], settings.fetch_limits)
    recipe = recipe_of(page.text, page.address, settings.language_model if params["use_llm_fallback"] else None)
    # Pages, and what is written in them as JSON, hold characters that no database keeps.
    return dict(storable_texts(recipe.as_json(params["url"])))


@cache
def settings_of_this_process() -> RecipeSettings:
    """Read from the environment once."""
    from penstock_apps.recipes.settings import RecipeSettings

    return read_settings(RecipeSettings)


def describe(result: Any) -> str:
    """What was found on a page, in a few words."""
    if not isinstance(result, dict) or not isinstance(result.get("recipe"), dict):
        return ""
    recipe = result["recipe"]
    parts = (counted(len(recipe["ingredients"]), "ingredient"), counted(len(recipe["steps"]), "step"))
    return f"{recipe['title']}: {', '.join(parts)}"
