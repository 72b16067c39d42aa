"""Fetching and reading in the test's own process and thread, for tests of what pages say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from penstock_apps.recipes.parsing import fetching, reading
from penstock_apps.recipes.parsing.language_model import LanguageModel
from penstock_apps.recipes.parsing.limits import FetchLimits
from penstock_apps.recipes.parsing.page import Page
from penstock_apps.recipes.parsing.recipe import FoundRecipe

Argument = TypeVar("Argument")
Value = TypeVar("Value")


@dataclass
class Fetched:
    """A page as text, and where it was found."""

    address: str
    text: str


def fetch(url: str, limits: FetchLimits) -> Fetched:
    """Fetch a page, and read its text."""
    page = asyncio.run(fetching.fetch(url, limits))
    return Fetched(page.address, page.read())


def recipe_of(page: str, address: str, model: LanguageModel | None = None, *, llm_allowed: bool = True) -> FoundRecipe:
    """The recipe of a page with this text."""
    body = Page(address, page.encode("utf-8", "replace"), "utf-8")
    return asyncio.run(reading.recipe_of(body, model, llm_allowed=llm_allowed, run_apart=_run_here))


async def _run_here(function: Callable[[Argument], Value], argument: Argument) -> Value:
    return function(argument)
