"""Fetching and reading one page, in a process of its own: it knows the environment, and no database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from penstock import ItemContext
from penstock.errors import ConfigurationError
from penstock.lifecycle import storable_texts
from penstock_apps.recipes.language_model import LanguageModel
from penstock_apps.recipes.limits import FetchLimits, limits_from


def parse(item: ItemContext) -> dict[str, Any]:
    """The recipe of the page the job asks for."""
    # Loaded where pages are read: the command line and the server need neither.
    from penstock_apps.recipes.fetching import fetch
    from penstock_apps.recipes.reading import recipe_of

    params: Any = item.params
    limits, model = settings_of_this_process()
    page = fetch(params["url"], limits)
    found = recipe_of(page.text, page.address, model if params["use_llm_fallback"] else None)
    # Pages, and what is written in them as JSON, hold characters that no database keeps.
    return dict(storable_texts(found.as_json(params["url"])))


def model_from(environment: Mapping[str, str]) -> LanguageModel | None:
    """Read ``PENSTOCK_LLM_URL``, ``_MODEL`` and ``_KEY``; without an address nobody is asked."""
    url = environment.get("PENSTOCK_LLM_URL")
    if not url:
        return None
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"PENSTOCK_LLM_URL is {url!r}; it begins with http:// or https://")
    model = environment.get("PENSTOCK_LLM_MODEL")
    if not model:
        raise ConfigurationError("PENSTOCK_LLM_URL is set, and PENSTOCK_LLM_MODEL does not say which model to ask")
    return LanguageModel(url, model, environment.get("PENSTOCK_LLM_KEY") or None)


@cache
def settings_of_this_process() -> tuple[FetchLimits, LanguageModel | None]:
    """Read from the environment once."""
    return limits_from(os.environ), model_from(os.environ)
