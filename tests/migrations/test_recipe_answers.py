"""The recipes that a language model made are moved into a table of their own; what pages say themselves stays."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from penstock import Penstock
from penstock.application import Migrations
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.settings import RecipeSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def database_url(migrated_url: str) -> str:
    """The recipes as the revision before left them: one of a page, one of a model, one of a time that said neither."""
    app = Penstock(migrated_url)
    first = replace(recipes_application, migrations=Migrations("penstock_apps.recipes", head="0002"))
    app.install(first, RecipeSettings())
    app.system.migrate()
    table = "recipe" if migrated_url.startswith("sqlite") else "penstock.recipe"

    def fill(connection: Any) -> None:
        for url_hash, result in (("page", {"used_llm": False}), ("model", {"used_llm": True}), ("old", {})):
            connection.execute(
                text(f"INSERT INTO {table} VALUES (:url_hash, :url_hash, '[]', :result, :now)"),
                {"url_hash": url_hash, "result": json.dumps(result), "now": NOW.replace(tzinfo=None)},
            )

    app.in_transaction(fill)
    app.close()
    return migrated_url


def test_what_a_model_made_is_for_those_who_allow_it(database_url: str) -> None:
    app = Penstock(database_url)
    repository = app.install(recipes_application, RecipeSettings()).repository
    app.system.migrate()
    found = {
        (name, llm_allowed): repository.latest(name, llm_allowed=llm_allowed)
        for name in ("page", "model", "old")
        for llm_allowed in (True, False)
    }
    assert {key for key, known in found.items() if known is None} == {("model", False)}
    known = found["model", True]
    assert known is not None
    assert (known.title, known.ingredients, known.parsed_at) == ("model", [], NOW)
    result = repository.result("model", llm_allowed=True)
    assert result is not None
    assert result["used_llm"]
    app.close()
