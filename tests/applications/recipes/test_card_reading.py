"""What was seen on a card is taken for title, ingredients and steps, with a warning where that is a guess."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from penstock_apps.recipes.parsing.reading import Reading, complete_reading
from penstock_apps.recipes.photos.card_reading import WITHOUT_TITLE, SeenCard, read_card
from penstock_apps.recipes.photos.text_lines import SeenText
from tests.applications.recipes.pages import SOUP
from tests.applications.recipes.photos import CARD, GERMAN, line
from tests.applications.recipes.site import Site, open_site
from tests.applications.recipes.test_language_model import model

Argument = TypeVar("Argument")
Value = TypeVar("Value")


def seen(*lines: tuple[int, str] | str, confidence: float = 1.0) -> tuple[SeenText, ...]:
    """Lines below each other; an empty one is a space."""
    sized = [(18, each) if isinstance(each, str) else each for each in lines]
    places = enumerate(sized)
    return tuple(line(text, 30, 30 * n, height=size, confidence=confidence) for n, (size, text) in places if text)


def read(*pictures: tuple[SeenText, ...], hint: str | None = None) -> Reading:
    return read_card(SeenCard(pictures, hint))


def recipe(*lines: tuple[int, str] | str, hint: str | None = None) -> tuple[str, list[str], list[str], tuple[str, ...]]:
    found = read(seen(*lines), hint=hint).recipe
    assert found is not None
    assert found.strategy == "photo"
    return found.recipe.title, [each.text for each in found.recipe.ingredients], found.recipe.steps, found.warnings


def test_headings_say_what_follows() -> None:
    assert recipe(*CARD) == (
        "Tomato soup",
        ["2 tbsp olive oil", "1 ½ cups tomatoes, chopped", "Salt, to taste"],
        ["Warm the oil in a pot and fry the onion until it is soft.", "Add the tomatoes and simmer."],
        (),
    )
    found = read(seen(*CARD)).recipe
    assert found is not None
    assert (found.recipe.servings, found.recipe.yields) == (4, "Serves 4")


def test_in_german_too() -> None:
    title, ingredients, steps, warnings = recipe(*GERMAN)
    assert (title, ingredients) == ("Omas Käsespätzle", ["500 g Mehl", "4 Eier", "200 g Bergkäse, gerieben"])
    assert steps == ["Mehl, Eier und Wasser zu einem zähen Teig schlagen.", "Den Teig in kochendes Wasser hobeln."]
    assert warnings == ()


def test_a_title_and_a_description_over_several_lines() -> None:
    lines = ((36, "Grandmother's best"), (36, "apple crumble"), "From her own book, writ-", "ten in 1952.", *CARD[3:])
    found = read(seen(*lines)).recipe
    assert found is not None
    assert (found.recipe.title, found.recipe.description) == (
        "Grandmother's best apple crumble", "From her own book, written in 1952.",
    )  # fmt: skip


def test_times_and_servings_are_no_ingredients_and_no_headings() -> None:
    found = read(
        seen((36, "Bread"), "Preparation: 20 min", "Cooking time: 45 min", "Ingredients (makes 2 loaves)",
             "500 g flour", "Method", "Bake it.")
    ).recipe  # fmt: skip
    assert found is not None
    assert (found.recipe.prep_minutes, found.recipe.cook_minutes, found.recipe.yields) == (20, 45, "makes 2 loaves")
    assert [each.text for each in found.recipe.ingredients] == ["500 g flour"]


def test_a_title_of_no_special_size_is_a_guess() -> None:
    title, _, _, warnings = recipe("Soup", "Ingredients", "2 eggs", "Method", "Boil.")
    assert (title, warnings) == ("Soup", ("The title is a guess: it is the first line.",))


def test_a_hint_is_the_title() -> None:
    title, *_, warnings = recipe("Soup", "Ingredients", "2 eggs", "Method", "Boil.", hint="Egg soup")
    assert (title, warnings) == ("Egg soup", ())


def test_without_a_title_it_says_so_and_a_model_may_know_better() -> None:
    title, *_, warnings = recipe("Ingredients", "2 eggs", "Method", "Boil.")
    assert (title, warnings) == (WITHOUT_TITLE, ("No title was found: give it one.",))
    assert not read(seen("Ingredients", "2 eggs", "Method", "Boil.")).is_whole


def test_without_headings_amounts_say_what_is_an_ingredient() -> None:
    title, ingredients, steps, warnings = recipe(
        (36, "Pancakes"), "200 g flour", "2 eggs", "Salt", "300 ml milk", "", "Mix all of it and wait for",
        "half an hour.", "", "Bake them in butter.",
    )  # fmt: skip
    assert (title, ingredients) == ("Pancakes", ["200 g flour", "2 eggs", "Salt", "300 ml milk"])
    assert steps == ["Mix all of it and wait for half an hour.", "Bake them in butter."]
    assert warnings == ("There are no headings: which lines are ingredients, and which are steps, is a guess.",)


def test_a_line_that_goes_on_belongs_to_the_one_above() -> None:
    _, ingredients, _, _ = recipe(
        "Soup", "Ingredients", "200 g tomatoes, cut in", "small pieces", "2 eggs", "Method", "Boil."
    )
    assert ingredients == ["200 g tomatoes, cut in small pieces", "2 eggs"]


def test_several_pictures_are_one_recipe() -> None:
    found = read(seen(*CARD[:8]), (), seen(*CARD[8:])).recipe
    assert found is not None
    assert (found.recipe.title, len(found.recipe.ingredients), len(found.recipe.steps)) == ("Tomato soup", 3, 2)
    assert found.warnings == ("No text was found in picture 2.",)


def test_what_was_hard_to_read_is_named() -> None:
    unsure = line("3 tbsp sug4r", 30, 100, confidence=0.6)
    found = read((*seen((36, "Soup"), "Ingredients", "2 eggs"), unsure)).recipe
    assert found is not None
    assert found.warnings == ("1 line could not be read surely: “3 tbsp sug4r”.",)


@pytest.mark.parametrize(
    "lines", [(), ("The mill", "It stands where the stream leaves the hills."), ("2026",), ("Ingredients", "Method")]
)
def test_what_is_no_recipe_is_none(lines: tuple[str, ...]) -> None:
    assert read(seen(*lines)).recipe is None


# A model -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def models() -> Iterator[Site]:
    with open_site() as one:
        yield one


async def run_here(function: Callable[[Argument], Value], argument: Argument) -> Value:
    return function(argument)


def completed(reading: Reading, site: Site, *, llm_allowed: bool = True) -> tuple[str, bool]:
    asked = model(site, json.loads(json.dumps(SOUP)))
    found = asyncio.run(complete_reading(reading, "", asked, llm_allowed=llm_allowed, run_apart=run_here))
    return found.strategy, found.used_llm


def test_a_model_is_asked_about_a_guess_and_shown_the_lines_in_their_order(models: Site) -> None:
    guess = read(seen("200 g flour", "2 eggs", "Mix and bake."))
    assert completed(guess, models) == ("llm", True)
    assert json.loads(models.bodies[0])["messages"][1]["content"] == "200 g flour\n2 eggs\nMix and bake."
    assert completed(guess, models, llm_allowed=False) == ("photo", False)
    assert completed(read(seen(*CARD)), models) == ("photo", False)
    assert len(models.bodies) == 1
