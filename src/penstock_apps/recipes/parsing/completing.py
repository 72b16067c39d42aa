"""Completing a recipe: where the rules of its site, or the page's own lists, know more than the marks in it.

A rule for a site is written because the marks of that site are wrong: its title and its times count, and its
ingredients, unless they are clearly fewer. Lists that a page shows count where the marks have hardly any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from penstock_apps.recipes.limits import MAX_LINES
from penstock_apps.recipes.parsing import headings, library
from penstock_apps.recipes.parsing.ingredients import Ingredient, read_ingredient
from penstock_apps.recipes.parsing.page_view import PageView
from penstock_apps.recipes.parsing.recipe import FoundRecipe, ParsedRecipe
from penstock_apps.recipes.parsing.sections import key_of, read_parts, split_steps, with_sections_of
from penstock_apps.recipes.parsing.titles import tidy_title

_FEW = 3
"""Of fewer ingredients than these it is asked whether the page shows more."""
_MOST_OF = 0.7
_CUT = f"More than {MAX_LINES:,} ingredients or steps: the others were left out."


def complete(candidate: FoundRecipe, view: PageView, partials: Sequence[ParsedRecipe]) -> FoundRecipe:
    """A recipe with all that its page says; ``partials`` are what less sure or less whole ways have found of it."""
    recipe = candidate.recipe
    for partial in partials:
        if partial is not recipe and key_of(partial.title) == key_of(recipe.title):
            recipe = _fill_blanks(recipe, partial)
    is_by_rule = False
    if library.has_own_rules(view.address) and view.rules is not None:
        recipe = _by_rules(recipe, view.rules.recipe, view.rules.own_rules)
        is_by_rule = "ingredients" in view.rules.own_rules and recipe.ingredients == view.rules.recipe.ingredients
    if view.tree is not None:
        recipe = _by_lists(recipe, view, may_add=not is_by_rule)
        if not any(ingredient.section for ingredient in recipe.ingredients) and len(recipe.ingredients) > _FEW:
            parts = headings.lines_with_headings(view.tree, view.texts)
            recipe = replace(recipe, ingredients=with_sections_of(recipe.ingredients, parts))
    recipe = replace(recipe, title=tidy_title(recipe.title, view.site_names))
    return replace(
        candidate, recipe=recipe, warnings=(*candidate.warnings, _CUT) if recipe.is_cut else candidate.warnings
    )


def _fill_blanks(recipe: ParsedRecipe, other: ParsedRecipe) -> ParsedRecipe:
    """A recipe with what another one of the same name says besides."""
    missing = {
        field.name: getattr(other, field.name)
        for field in fields(ParsedRecipe)
        if field.name != "step_sections" and not getattr(recipe, field.name) and getattr(other, field.name)
    }
    return replace(recipe, **missing)


def _by_rules(recipe: ParsedRecipe, rules: ParsedRecipe, own_rules: frozenset[str]) -> ParsedRecipe:
    """What the rules of a site say, where they are its own, and what there is not without them."""

    def knows(rule: str, value: object) -> bool:
        return rule in own_rules and bool(value)

    has_more = _weight(rules.ingredients) >= _MOST_OF * _weight(recipe.ingredients)
    takes_ingredients = not recipe.ingredients or (knows("ingredients", rules.ingredients) and has_more)
    prep_minutes = rules.prep_minutes if knows("prep_time", rules.prep_minutes) else recipe.prep_minutes
    cook_minutes = rules.cook_minutes if knows("cook_time", rules.cook_minutes) else recipe.cook_minutes
    total_minutes = recipe.total_minutes
    if knows("total_time", rules.total_minutes):
        total_minutes = rules.total_minutes
    elif total_minutes == (recipe.prep_minutes or 0) + (recipe.cook_minutes or 0):
        total_minutes = None  # the sum of what it consists of, which may be other times now
    return replace(
        recipe,
        title=rules.title if knows("title", rules.title) else recipe.title,
        ingredients=rules.ingredients if takes_ingredients else recipe.ingredients,
        steps=recipe.steps or rules.steps,
        prep_minutes=prep_minutes,
        cook_minutes=cook_minutes,
        total_minutes=total_minutes,
    )


def _by_lists(recipe: ParsedRecipe, view: PageView, *, may_add: bool) -> ParsedRecipe:
    """What the marks lack and the page shows; to what a rule of the site has found nothing is added."""
    lists = view.lists
    if (may_add or not recipe.ingredients) and _knows_more([line for line, _ in lists.ingredients], recipe.ingredients):
        recipe = replace(recipe, ingredients=read_parts(lists.ingredients))
    if not recipe.steps and lists.steps:
        steps, sections = split_steps(lists.steps)
        recipe = replace(recipe, steps=steps, step_sections=sections)
    return recipe


def _knows_more(page_lines: Sequence[str], known_ingredients: Sequence[Ingredient]) -> bool:
    """Has a list of the page nearly all that the marks have, and more of it? Twice as much is another system of units.

    Of one or two ingredients that the marks have, it may say otherwise.
    """
    if len(known_ingredients) < _FEW:
        return len(page_lines) >= _FEW
    keys = {key_of(ingredient.text) for ingredient in known_ingredients}
    others = [line for line in page_lines if key_of(line) not in keys]
    has_most = len(page_lines) - len(others) >= _MOST_OF * len(known_ingredients)
    has_more = len(known_ingredients) < len(page_lines) < 2 * len(known_ingredients)
    with_amount = [line for line in others if read_ingredient(line).quantity is not None]
    return has_more and has_most and len(with_amount) >= _MOST_OF * len(others)


def _weight(ingredients: Sequence[Ingredient]) -> int:
    return sum(len(ingredient.text) for ingredient in ingredients)
