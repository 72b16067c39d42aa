"""Rules for hundreds of sites, and heuristics for the others, by the recipe-scrapers library."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from lxml import html

from penstock_apps.recipes.addresses import host_of
from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.schema_org import servings
from penstock_apps.recipes.parsing.texts import lines, plain

Value = TypeVar("Value")
STRATEGY = "site_rules"
_MAX_ELEMENTS = 20_000


def by_site_rules(tree: html.HtmlElement, address: str) -> ParsedRecipe | None:
    """What the library finds; None where it finds nothing, or is not installed.

    It is given the page with every tag complete, without the microdata that were read before, and none that has far
    more elements than a page for people: the parsers below it take long over each of these. The tree is changed for it.
    """
    if sum(1 for _ in islice(tree.iter(), _MAX_ELEMENTS + 1)) > _MAX_ELEMENTS:
        return None
    try:
        # Over a second to import, and most pages say what they are themselves.
        from recipe_scrapers import scrape_html
    except ImportError:
        return None
    for element in tree.xpath("//*[@itemscope]"):
        del element.attrib["itemscope"]
    try:
        scraper = scrape_html(html.tostring(tree, encoding="unicode"), org_url=address, supported_only=False)
    except Exception:  # noqa: BLE001 - a library that reads strangers' pages raises whatever it meets there
        return None
    ingredients = _read(scraper.ingredients) or []
    steps = _read(scraper.instructions_list) or []
    recipe = ParsedRecipe(
        title=plain(_read(scraper.title) or "")[:500],
        description=_read(scraper.description) or None,
        ingredients=[read_ingredient(text) for line in ingredients if (text := plain(line))],
        steps=[text for step in steps for text in lines(step)],
        yields=_read(scraper.yields) or None,
        prep_minutes=_minutes(scraper.prep_time),
        cook_minutes=_minutes(scraper.cook_time),
        total_minutes=_minutes(scraper.total_time),
        image_url=_read(scraper.image) or None,
        author=_read(scraper.author) or None,
    )
    recipe.servings = servings([recipe.yields]) if recipe.yields else None
    return recipe if recipe.is_whole else None


def strategy_of(address: str) -> str:
    """The name of the rules, for operators."""
    return f"{STRATEGY}:{host_of(address)}"


def _read(read_property: Callable[[], Value]) -> Value | None:
    """One property; the library raises where a page has none."""
    try:
        return read_property()
    except Exception:  # noqa: BLE001 - see above
        return None


def _minutes(read_property: Callable[[], object]) -> int | None:
    value = _read(read_property)
    return value if isinstance(value, int) and 0 < value < 1_000_000 else None
