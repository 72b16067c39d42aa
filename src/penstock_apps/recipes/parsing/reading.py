"""From a page to a recipe: the surest way first, and each further way where those before it found nothing whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from penstock import Permanent, Retryable
from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.parsing import json_ld, library, markup
from penstock_apps.recipes.parsing.completing import complete
from penstock_apps.recipes.parsing.headings import by_headings
from penstock_apps.recipes.parsing.language_model import STRATEGY as LLM
from penstock_apps.recipes.parsing.language_model import WARNING, LanguageModel
from penstock_apps.recipes.parsing.model_answers import ModelAnswer, read_answer, words_of
from penstock_apps.recipes.parsing.page import KeptPage, Page
from penstock_apps.recipes.parsing.page_view import PageView
from penstock_apps.recipes.parsing.recipe import FoundRecipe, ParsedRecipe
from penstock_apps.recipes.parsing.schema_org import Node, read

Argument = TypeVar("Argument")
Value = TypeVar("Value")

_PART_UNREADABLE = "Part of the page's data could not be read."
_SEVERAL = "The page has several recipes; this is the fullest of them."
_TITLE_RECIPE = "The page has several recipes; this is the one that it is called by."
_NOT_ANSWERED = "The language model could not be asked; this is what the page says itself."
_PARTIAL = {
    "ingredients": "No ingredients were found.",
    "steps": "No steps were found.",
    "title": "No title was found.",
}


class RunApart(Protocol):
    """Makes a call somewhere else, with limits on what it may take."""

    def __call__(self, function: Callable[[Argument], Value], argument: Argument, /) -> Awaitable[Value]: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page says itself: a recipe, perhaps not a whole one, or nothing; and its words, for who is asked next."""

    recipe: FoundRecipe | None
    words: str = ""
    is_guess: bool = False
    """Is it a recipe by guess, of which a model may know better?"""

    @property
    def is_whole(self) -> bool:
        """Is there nothing left to ask for?"""
        return self.recipe is not None and self.recipe.recipe.is_whole and not self.is_guess


def read_page(page: Page | KeptPage) -> Reading:
    """What a page says itself. A stranger wrote it: this runs in a process with limits."""
    text = page.read()
    view = PageView(text, page.address)
    partials: list[FoundRecipe] = []
    for candidate in _ways(view, partials):
        if candidate.recipe.is_whole:
            return Reading(complete(candidate, view, [partial.recipe for partial in partials]))
        partials.append(candidate)
    if not partials:
        return Reading(None, words_of(text))
    fullest = max(partials, key=lambda candidate: candidate.recipe.weight)
    partial = complete(fullest, view, [partial.recipe for partial in partials])
    return Reading(partial) if partial.recipe.is_whole else Reading(partial, words_of(text))


async def recipe_of(
    page: Page | KeptPage, model: LanguageModel | None = None, *, llm_allowed: bool = True, run_apart: RunApart
) -> FoundRecipe:
    """The recipe on a page; ``PageFailure.NO_RECIPE`` where there is none.

    What takes a page or an answer apart is handed to ``run_apart``; the model is waited for here.
    """
    reading = await run_apart(read_page, page)
    return await complete_reading(reading, page.address, model, llm_allowed=llm_allowed, run_apart=run_apart)


async def complete_reading(
    reading: Reading, address: str, model: LanguageModel | None, *, llm_allowed: bool, run_apart: RunApart
) -> FoundRecipe:
    """A recipe that was read, with a model's help where there is something left to ask for.

    A model that cannot be asked takes nothing away: what was read is the answer, with a warning.
    """
    partial = reading.recipe
    if partial is not None and reading.is_whole:
        return partial
    failure: Permanent | Retryable | None = None
    if model is not None and llm_allowed:
        try:
            answer = await model.ask(reading.words)
        except (Permanent, Retryable) as error:
            failure = error
        else:
            recipe = await run_apart(read_answer, ModelAnswer(address, answer))
            if recipe is not None:
                return FoundRecipe(recipe, LLM, used_llm=True, warnings=(WARNING,))
    if partial is not None and partial.recipe.title and (partial.recipe.ingredients or partial.recipe.steps):
        missing = [text for name, text in _PARTIAL.items() if not getattr(partial.recipe, name)]
        warnings = (*partial.warnings, *missing, *(() if failure is None else (_NOT_ANSWERED,)))
        has_answered = model is None or (llm_allowed and failure is None)
        return FoundRecipe(partial.recipe, partial.strategy, warnings=warnings, llm_may_help=not has_answered)
    raise failure or PageFailure.NO_RECIPE.error()


def _ways(view: PageView, partials: Sequence[FoundRecipe]) -> Iterator[FoundRecipe]:
    """What each way finds, in order; later ones are not tried unless somebody asks for more than the partial ones."""
    nodes, unread = json_ld.recipe_nodes(view.text)
    yield from _fullest(nodes, view, json_ld.STRATEGY, (_PART_UNREADABLE,) if unread else ())
    tree = view.tree
    if tree is None:
        return
    for words in (markup.MICRODATA, markup.RDFA):
        yield from _fullest(markup.recipe_nodes(tree, words, view.texts), view, words.strategy, ())
    yield from _of(markup.microformat(tree, view.texts), "h_recipe")
    rules = view.rules
    if rules is not None and rules.recipe.is_whole:
        yield from _of(rules.recipe, library.strategy_of(view.address))
    if not any(
        partial.recipe.title for partial in partials
    ):  # else what the headings have is put to what the marks have
        yield from _of(by_headings(tree, view.texts, view.lists), "headings")


def _fullest(nodes: list[Node], view: PageView, strategy: str, warnings: tuple[str, ...]) -> Iterator[FoundRecipe]:
    """Of several recipes the one that the page is called by, or else the fullest."""
    recipes = [read(node, view.address) for node in nodes]
    whole = {recipe.title: recipe for recipe in sorted(recipes, key=lambda recipe: recipe.weight) if recipe.is_whole}
    if len(whole) > 1:
        title_recipe = view.recipe_it_is_called_by(whole)
        warnings = (*warnings, _SEVERAL if title_recipe is None else _TITLE_RECIPE)
        yield FoundRecipe(title_recipe or max(recipes, key=lambda recipe: recipe.weight), strategy, warnings=warnings)
    elif recipes:
        yield FoundRecipe(max(recipes, key=lambda recipe: recipe.weight), strategy, warnings=warnings)


def _of(recipe: ParsedRecipe | None, strategy: str) -> Iterator[FoundRecipe]:
    if recipe is not None:
        yield FoundRecipe(recipe, strategy)
