"""What clients write of a recipe, what is kept of it, and what they read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import ValidationError
from sqlalchemy import Column, Table, Uuid, insert, select

from penstock.store import own_metadata
from penstock.store.engine import Store, open_store
from penstock.store.schema import OURS, Schema, migrate
from penstock_apps.recipes.repository import SavedRecipe
from penstock_apps.recipes.saved_recipes import RecipeChange, RecipeCreate, show_recipe
from penstock_apps.recipes.tables import metadata as tables

NOW = datetime(2025, 12, 9, 12, 34, 56, tzinfo=UTC)


def shown(given: dict[str, Any], *, job: UUID | None = None) -> dict[str, Any]:
    """What is shown of a recipe that was given so."""
    recipe = RecipeCreate.model_validate({"title": "Soup"} | given)
    return show_recipe(SavedRecipe(7, uuid4(), "ada", recipe.title, recipe.as_kept(), job, NOW, NOW))


def test_an_ingredient_is_a_line_or_its_parts_and_is_shown_by_both() -> None:
    given: list[Any] = [
        "500 g flour",
        {"text": "olive oil", "quantity_display": "2", "unit": "tbsp"},
        {"text": "water"},
        {"name": "tomatoes", "note": "chopped", "quantity": 1.5, "unit": "cup"},
        {"name": "garlic", "quantity": 2, "quantity_to": 3},
        {"text": "salt", "quantity": "a pinch", "id": 12, "no_such": 1},
        {"line": "3 eggs"},
        {},
    ]
    ingredients = shown({"ingredients": given})["ingredients"]
    assert [one["id"] for one in ingredients] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [(one["text"], one["quantity_display"], one["unit"]) for one in ingredients] == [
        ("500 g flour", None, None), ("olive oil", "2", "tbsp"), ("water", None, None),
        ("tomatoes, chopped", "1 1/2", "cup"), ("garlic", "2-3", None), ("salt", "a pinch", None),
        ("3 eggs", None, None), ("", None, None),
    ]  # fmt: skip
    assert all("no_such" not in one and "quantity" not in one for one in ingredients)


def test_steps_are_texts_or_have_numbers_which_put_them_in_order() -> None:
    steps = [{"step_number": 2, "text": "Bake."}, {"step_number": 1, "text": "Mix."}, {"text": "Eat."}]
    assert shown({"steps": steps})["steps"] == [
        {"id": 1, "step_number": 1, "text": "Mix."},
        {"id": 2, "step_number": 2, "text": "Bake."},
        {"id": 3, "step_number": 3, "text": "Eat."},
    ]
    assert [step["text"] for step in shown({"steps": ["Mix.", "Bake."]})["steps"]] == ["Mix.", "Bake."]


def test_a_recipe_that_was_shown_can_be_given_back() -> None:
    first = shown(
        {
            "ingredients": ["500 g flour", {"text": "oil", "quantity_display": "2"}], "steps": ["Mix."],
            "tags": ["basic", "bread", "basic"], "prep_time_minutes": 5, "notes": "more salt", "source_type": "image",
        }
    )  # fmt: skip
    again = shown(first)
    assert {name: value for name, value in first.items() if name != "uuid"} == {
        name: value for name, value in again.items() if name != "uuid"
    }
    assert [tag["name"] for tag in first["tags"]] == ["basic", "bread"]


def test_minutes_have_two_names_and_nothing_is_not_none() -> None:
    recipe = shown({"prep_minutes": 5, "cook_time_minutes": 0, "servings": 0, "total_time_minutes": 10.0})
    assert [recipe[f"{name}_time_minutes"] for name in ("prep", "cook", "total")] == [5, 0, 10]
    assert recipe["servings"] is None
    assert shown({"notes": ["more salt", "less pepper"]})["notes"] == "more salt\nless pepper"


def test_where_a_recipe_is_from_is_said_or_known() -> None:
    assert shown({})["source_type"] == "manual"
    assert shown({}, job=uuid4())["source_type"] == "url"
    assert shown({"source_type": "manual"}, job=uuid4())["source_type"] == "manual"


def test_sections_are_kept() -> None:
    recipe = shown(
        {
            "ingredients": [{"line": "1 onion", "section": "For the sauce"}],
            "steps": ["Mix.", {"text": "Chop.", "section": "For the sauce"}],
        }
    )
    assert recipe["ingredients"][0]["section"] == "For the sauce"
    assert [step.get("section") for step in recipe["steps"]] == [None, "For the sauce"]


def test_a_title_is_kept_without_the_blanks_around_it() -> None:
    assert shown({"title": "  Soup \n"})["title"] == "Soup"


def test_a_change_says_what_was_given_and_what_is_to_go() -> None:
    change = RecipeChange.model_validate({"tags": [], "steps": None, "servings": 0, "description": None, "odd": 1})
    assert change.as_kept() == {"tags": None, "steps": None, "servings": None, "description": None}


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": ""}, {"title": "x" * 501}, {"servings": 1001}, {"servings": -1}, {"servings": "4"},
        {"prep_time_minutes": 1.5}, {"prep_minutes": True}, {"source_type": "book"}, {"steps": [{"step_number": 1}]},
        {"steps": [1]}, {"ingredients": [1]}, {"ingredients": [{"text": "x" * 1001}]}, {"tags": [{"id": 1}]},
        {"ingredients": ["x"] * 5_001}, {"ingredients": [{"quantity": float("inf")}]},
            {"ingredients": [{"quantity": float("nan")}]}, {"ingredients": [{"quantity_to": float("nan")}]},
            {"title": "  "}, {"title": "\u200b\n"}, {"parse_job_id": "nonsense"},
        {"ingredients": [{"quantity": -1}]}, {"notes": ["x" * 10_001]},
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RecipeCreate.model_validate({"title": "Soup"} | wrong)


# The numbers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A database before recipes had numbers."""
    url = f"sqlite:///{tmp_path}/old.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    store = open_store(url)
    migrate(store, (OURS, Schema.of_app("recipes", "penstock_apps.recipes", "0001")))
    yield store
    store.close()


def test_recipes_that_were_saved_before_get_numbers_by_their_age(old: Store) -> None:
    saved = tables.tables["saved_recipe"]
    ids = [uuid4() for _ in range(3)]
    body = {"ingredients": ["500 g flour"], "total_minutes": 35}
    with old.engine.begin() as connection:
        for age, recipe_id in ((1, ids[1]), (0, ids[2]), (2, ids[0])):
            moment = NOW - timedelta(days=age)
            row = {"id": recipe_id, "user_id": "ada", "title": f"{age}", "body": body, "parse_job_id": recipe_id}
            connection.execute(insert(_before(saved)).values(**row, created_at=moment, updated_at=moment))
    migrate(old, (OURS, Schema.of_app("recipes", "penstock_apps.recipes", "0002")))
    with old.engine.begin() as connection:
        rows = connection.execute(select(saved).order_by(saved.c.id)).all()
        added = insert(saved).values(uuid=uuid4(), user_id="ada", title="new", body={}, created_at=NOW, updated_at=NOW)
        assert connection.execute(added.returning(saved.c.id)).scalar_one() == 4
    assert [(row.id, row.uuid, row.title, row.parse_job_id) for row in rows] == [
        (1, ids[0], "2", ids[0]), (2, ids[1], "1", ids[1]), (3, ids[2], "0", ids[2]),
    ]  # fmt: skip
    assert all(row.body == body for row in rows)


def _before(saved: Table) -> Table:
    """The table as it was: its key was a UUID."""
    others = [Column(column.name, column.type) for column in saved.columns if column.name not in ("id", "uuid")]
    return Table("saved_recipe", own_metadata(), Column("id", Uuid), *others)
