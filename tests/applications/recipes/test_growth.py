"""Pages that are made to take long: four times the page takes about four times as long, and not sixteen times."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from penstock import Permanent, Retryable
from penstock_apps.recipes.parsing.model_answers import ModelAnswer, read_answer
from penstock_apps.recipes.parsing.page import Page
from penstock_apps.recipes.parsing.reading import read_page
from tests.applications.recipes.pages import ADDRESS

GROWTH = 8.0
"""Between four, which is in proportion, and sixteen, which is the square of it."""
MEASURABLE = 0.02
SIZE = 8_000


def in_script(step: str) -> str:
    recipe = {"@type": "Recipe", "name": "x", "recipeIngredient": ["1 egg"], "recipeInstructions": step}
    return f'<script type="application/ld+json">{json.dumps(recipe)}</script>'


def nested(before: str, inside: str, depth: int = 100) -> str:
    return before * depth + inside


PARAGRAPH = "<p>x"
H_RECIPE = '<div class="h-recipe">'
STEPS = '<div itemprop="recipeInstructions">'
THING = '<div itemprop="name" itemscope typeof="Recipe" itemtype="Recipe">'
MARKUP = '<div itemscope itemtype="http://schema.org/Recipe">'
HOSTILE: dict[str, Callable[[int], str]] = {
    "a break of blanks": lambda size: in_script("<br" + " " * size),
    "breaks of blanks": lambda size: in_script("<br    " * (size // 7)),
    "marks without an end": lambda size: in_script("<" * size),
    "a mark without an end": lambda size: in_script("<" + "a" * size),
    "entities": lambda size: in_script("&amp;" * (size // 5)),
    "an entity of digits": lambda size: in_script("&#" + "9" * size + ";"),
    "openings of scripts": lambda size: '<script type="application/ld+json">' * (size // 8),
    "beginnings of scripts": lambda size: "<script " * size,
    "a script of blanks": lambda size: f'<script type="application/ld+json">{"{" + " " * size}</script>',
    "a type of blanks": lambda size: f'<script type={" " * size}application/ld+json>{{}}</script>',
    "ends of comments": lambda size: f'<script type="application/ld+json">{"]" * size}]]> </script>',
    "commas of blanks": lambda size: f'<script type="application/ld+json">[{"," + " " * size}</script>',
    "lists in lists": lambda size: f'<script type="application/ld+json">{"[" * size}</script>',
    "minutes in minutes": lambda size: in_script("x").replace('"name"', f'"totalTime": {"[" * 900}{"]" * 900}, "name"')
    + " " * size,
    "an ingredient of digits": lambda size: in_script("x").replace("1 egg", "1" * size),
    "ingredients of signs": lambda size: in_script("x").replace('"1 egg"', ",".join(['"1 ( - ( 1 / "'] * (size // 9))),
    "headings without a list": lambda size: "<b>ingredients</b>" * (size // 4),
    "headings in headings": lambda size: nested("<b>", "x " * size),
    "properties in properties": lambda size: MARKUP + nested(STEPS, PARAGRAPH * (size // 4)),
    "things in things": lambda size: nested(THING, "x" * size),
    "items in items": lambda size: MARKUP + STEPS + nested("<ul><li>", PARAGRAPH * (size // 4)),
    "classes in classes": lambda size: H_RECIPE + nested('<div class="e-instructions">', PARAGRAPH * (size // 4)),
    "scripts between texts": lambda size: "<script></script>x" * (size // 4),
    "a meta of blanks": lambda size: f"<meta charset={' ' * size}>",
    "beginnings of metas": lambda size: "<meta " * size,
}  # fmt: skip


def read(page: str, charset: str | None = "utf-8") -> None:
    """Read a page, whatever comes of it; what nobody foresaw is no answer."""
    try:
        read_page(Page(ADDRESS, page.encode(), charset))
    except (Permanent, Retryable):
        return


def seconds(use: Callable[[], object]) -> float:
    """Processor time, the least of three; what takes long is measured once."""
    least = float("inf")
    for _ in range(3):
        begun = time.thread_time()
        use()
        least = min(least, time.thread_time() - begun)
        if least > 0.3:
            break
    return least


def grows_in_proportion(small: Callable[[], object], large: Callable[[], object]) -> bool:
    """Does four times the text take less than eight times as long? On a busy machine it is measured again."""
    for _ in range(4):
        slow = seconds(large)
        if slow < MEASURABLE or slow / seconds(small) < GROWTH:
            return True
    return False


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_takes_time_in_proportion(name: str) -> None:
    small, large = (HOSTILE[name](size) for size in (SIZE, 4 * SIZE))
    read(small)
    assert grows_in_proportion(lambda: read(small), lambda: read(large))


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "base64"])
def test_a_charset_that_takes_long_is_none(charset: str) -> None:
    body = "a" * SIZE + "-" + "b" * SIZE
    small, large = (f"<p>{body * times}</p>" for times in (1, 4))
    read(small, charset)
    assert grows_in_proportion(lambda: read(small, charset), lambda: read(large, charset))


@pytest.mark.parametrize("said", ["```" + " " * SIZE, "```json" * SIZE, "{" * SIZE, "`" * SIZE])
def test_an_answer_of_a_model_takes_time_in_proportion(said: str) -> None:
    def answer(times: int) -> ModelAnswer:
        return ModelAnswer(ADDRESS, json.dumps({"choices": [{"message": {"content": said * times}}]}).encode())

    small, large = answer(1), answer(4)
    assert grows_in_proportion(lambda: read_answer(small), lambda: read_answer(large))
