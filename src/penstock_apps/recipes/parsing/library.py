"""Rules for hundreds of sites, and heuristics for the others, by the recipe-scrapers library, where it is installed.

The library reads strangers' pages: it raises whatever it meets there, and answers with anything. What it says is taken
where it has the shape of an answer, and what it does not say is not there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from inspect import unwrap
from itertools import islice
from typing import TYPE_CHECKING

from lxml import html

from penstock_apps.recipes.addresses import host_of
from penstock_apps.recipes.limits import MAX_LINES
from penstock_apps.recipes.parsing.durations import minutes
from penstock_apps.recipes.parsing.ingredients import Ingredient
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.schema_org import servings
from penstock_apps.recipes.parsing.sections import read_ingredients, read_parts, section_in
from penstock_apps.recipes.parsing.texts import lines, plain

if TYPE_CHECKING:
    from recipe_scrapers import AbstractScraper

STRATEGY = "site_rules"
_MAX_ELEMENTS = 20_000
_MAX_TEXT = 10_000
_FIELDS = ("title", "ingredients", "prep_time", "cook_time", "total_time")
"""Those that a rule may know better than the marks of a page."""


@dataclass(frozen=True, slots=True)
class SiteRules:
    """What the library says of a page, and for which fields it has rules of this site alone."""

    recipe: ParsedRecipe
    own_rules: frozenset[str] = frozenset()


def has_own_rules(address: str) -> bool:
    """Does the library know better than the marks of this site's pages?"""
    return bool(_own_rules(address))


def strategy_of(address: str) -> str:
    """The name of the rules, for operators."""
    return f"{STRATEGY}:{host_of(address)}"


def read_by_rules(tree: html.HtmlElement, address: str) -> SiteRules | None:
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fields that a site does not have
            page = html.tostring(tree, encoding="unicode")
            recipe = _read(scrape_html(page, org_url=address, supported_only=False))
    except Exception:  # noqa: BLE001 - see above: the page may say itself what the library stumbles over
        return None
    return SiteRules(recipe, _own_rules(address))


def _own_rules(address: str) -> frozenset[str]:
    """The fields that the rules of this site read in a way of their own."""
    host = host_of(address).removeprefix("www.")
    if "." not in host or host.rpartition(".")[2].isdigit():
        return frozenset()  # no site of the web is called so: the library need not be loaded
    try:
        from recipe_scrapers import SCRAPERS, AbstractScraper
    except ImportError:
        return frozenset()
    rules = SCRAPERS.get(host)
    if rules is None:
        return frozenset()
    # The library wraps the methods of a class, its parents' too, and puts them back into it: where a method is from is
    # said by its name alone.
    in_general = f"{AbstractScraper.__name__}."
    return frozenset(name for name in _FIELDS if not unwrap(getattr(rules, name)).__qualname__.startswith(in_general))


def _read(scraper: AbstractScraper) -> ParsedRecipe:
    ingredients = _texts(scraper.ingredients)
    steps = [line for step in _texts(scraper.instructions_list) for line in lines(step)]
    yields = _text(scraper.yields)
    return ParsedRecipe(
        title=(_text(scraper.title) or "")[:500],
        description=_text(scraper.description),
        ingredients=_read_groups(scraper, ingredients) or read_ingredients(ingredients[:MAX_LINES]),
        steps=steps[:MAX_LINES],
        yields=yields,
        servings=servings([yields]) if yields else None,
        prep_minutes=_minutes(scraper.prep_time),
        cook_minutes=_minutes(scraper.cook_time),
        total_minutes=_minutes(scraper.total_time),
        image_url=_text(scraper.image),
        author=_text(scraper.author),
        is_cut=max(len(ingredients), len(steps)) > MAX_LINES,
    )


def _read_groups(scraper: AbstractScraper, ingredients: list[str]) -> list[Ingredient]:
    """The ingredients with their sections; none where the library does not place all of them."""
    groups = _ask(scraper.ingredient_groups)
    if not isinstance(groups, list) or len(groups) < 2:
        return []
    parts: list[tuple[str, str | None]] = []
    for group in groups:
        purpose = getattr(group, "purpose", None)
        section = plain(purpose).rstrip(" :") if isinstance(purpose, str) else None
        texts = [plain(text) for text in getattr(group, "ingredients", ()) if isinstance(text, str)]
        parts += [(text, section or None) for text in texts if text]
    lines_found = sorted(line for line, _ in parts)
    is_whole = lines_found == sorted(line for line in ingredients if section_in(line) is None or line in lines_found)
    return read_parts(parts[:MAX_LINES]) if is_whole else []


def _ask(read_property: Callable[[], object]) -> object:
    """One property, whatever it is; the library raises where a page has none."""
    try:
        return read_property()
    except Exception:  # noqa: BLE001 - see above
        return None


def _text(read_property: Callable[[], object]) -> str | None:
    value = _ask(read_property)
    return plain(value)[:_MAX_TEXT] or None if isinstance(value, str) else None


def _texts(read_property: Callable[[], object]) -> list[str]:
    value = _ask(read_property)
    texts = value if isinstance(value, list | tuple) else ()
    return [text for part in texts if isinstance(part, str) and (text := plain(part))]


def _minutes(read_property: Callable[[], object]) -> int | None:
    return minutes(_ask(read_property))
