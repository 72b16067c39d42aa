"""Saved recipes between the API and the database: what clients may write, what is kept, and what they are shown.

The queue's client writes lists of objects and reads objects with numbers; our own pages write lines of text. Both are
taken. Kept are texts, and objects for the ingredients whose parts are known; shown is the client's form to everybody.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, StringConstraints

from penstock.lifecycle import JSON
from penstock_apps.numbers import NUMBER
from penstock_apps.recipes.limits import MAX_LINES
from penstock_apps.recipes.parsing.quantities import write_quantity
from penstock_apps.recipes.repository import SavedRecipe

Text = Annotated[str, Field(max_length=10_000)]
Line = Annotated[str, Field(max_length=1000)]
Tag = Annotated[str, Field(max_length=100)]
Minutes = Annotated[int, Field(ge=0, le=1_000_000), NUMBER]
Servings = Annotated[int, Field(ge=0, le=1000), NUMBER]
Amount = Annotated[float, Field(strict=True, ge=0, le=1_000_000_000, allow_inf_nan=False)]
SourceType = Literal["manual", "image", "url"]
_RECIPE: dict[str, JSON] = {
    "examples": [
        {
            "title": "Tomato soup",
            "ingredients": [{"text": "olive oil", "quantity_display": "2", "unit": "tbsp"}],
            "steps": [{"step_number": 1, "text": "Warm the oil."}],
        }
    ]
}
_MINUTES = ("prep_minutes", "cook_minutes", "total_minutes")
_AS_KEPT = ("description", "servings", "yields", "source_url", "image_url", "author", "notes")


def _visible(title: str) -> str:
    """A title that somebody can see."""
    if all(unicodedata.category(character)[0] in "ZC" for character in title):
        raise ValueError("a title of letters, not of blanks alone")
    return title


Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), AfterValidator(_visible)]


class SavedIngredient(BaseModel):
    """An ingredient: what it is, and how much of it."""

    text: Line | None = Field(default=None, description="What it is, without the amount.")
    quantity_display: str | None = Field(default=None, max_length=100, description="The amount as a person writes it.")
    unit: str | None = Field(default=None, max_length=100)
    quantity: Annotated[str, Field(max_length=100)] | Amount | None = Field(
        default=None, description="The same as `quantity_display`, or a number."
    )
    quantity_value: Amount | None = None
    quantity_to: Amount | None = Field(default=None, description="The upper end of a range.")
    name: Line | None = None
    note: Line | None = None
    line: Line | None = Field(default=None, description="The line as the page had it.")
    section: Tag | None = Field(default=None, description="What it is for: `For the sauce`.")

    def as_kept(self) -> dict[str, JSON]:
        """The amount is kept as a text, and what is not said is left out."""
        amount = self.quantity if self.quantity_display is None else self.quantity_display
        if isinstance(amount, float):
            amount = write_quantity(amount, self.quantity_to)
        data = self.model_dump(exclude={"quantity"}, exclude_none=True)
        return data if amount is None else {**data, "quantity_display": amount}


class SavedStep(BaseModel):
    """A step, and its place among the others."""

    step_number: Annotated[int, Field(ge=0, le=1_000_000), NUMBER] | None = None
    text: Text
    section: Tag | None = Field(default=None, description="What it is a step of: `For the sauce`.")

    def as_kept(self) -> JSON:
        """A text, unless there is more to say."""
        return self.text if self.section is None else {"text": self.text, "section": self.section}


class SavedTag(BaseModel):
    """A tag as it is shown."""

    name: Tag


class RecipeChange(BaseModel):
    """What may be changed of a saved recipe; what is not given stays as it is, what is not known is ignored."""

    model_config = ConfigDict(json_schema_extra=_RECIPE)
    title: Title | None = Field(default=None, examples=["Tomato soup"])
    description: Text | None = None
    ingredients: list[SavedIngredient | Line] | None = Field(
        default=None, max_length=MAX_LINES, examples=[["2 cups flour"]], description="Objects, or lines of text."
    )
    steps: list[SavedStep | Text] | None = Field(
        default=None,
        max_length=MAX_LINES,
        examples=[["Mix.", "Bake."]],
        description="Objects, or texts in their order.",
    )
    servings: Servings | None = Field(default=None, description="0 says as little as null.")
    yields: str | None = Field(default=None, max_length=500)
    prep_minutes: Minutes | None = Field(
        default=None, validation_alias=AliasChoices("prep_time_minutes", "prep_minutes")
    )
    cook_minutes: Minutes | None = Field(
        default=None, validation_alias=AliasChoices("cook_time_minutes", "cook_minutes")
    )
    total_minutes: Minutes | None = Field(
        default=None, validation_alias=AliasChoices("total_time_minutes", "total_minutes")
    )
    image_url: str | None = Field(default=None, max_length=2048)
    source_type: SourceType | None = None
    source_url: str | None = Field(default=None, max_length=2048)
    author: str | None = Field(default=None, max_length=500)
    notes: Text | Annotated[list[Text], Field(max_length=500)] | None = None
    tags: list[SavedTag | Tag] | None = Field(default=None, max_length=100)

    def as_kept(self) -> dict[str, JSON]:
        """What was given, apart from the title, as it is kept; None where something is to be removed."""
        body: dict[str, JSON] = self.model_dump(
            include=self.model_fields_set - {"title", "parse_job_id", "ingredients", "steps", "tags"}
        )
        if "servings" in body:
            body["servings"] = self.servings or None
        if isinstance(self.notes, list):
            body["notes"] = "\n".join(self.notes)
        if "ingredients" in self.model_fields_set:
            body["ingredients"] = self.ingredients and [
                part if isinstance(part, str) else part.as_kept() for part in self.ingredients
            ]
        if "steps" in self.model_fields_set:
            body["steps"] = self.steps and _in_order(self.steps)
        if "tags" in self.model_fields_set:
            names = (tag if isinstance(tag, str) else tag.name for tag in self.tags or ())
            body["tags"] = list(dict.fromkeys(names)) or None
        return body


class RecipeCreate(RecipeChange):
    """A recipe to keep."""

    title: Title = Field(examples=["Tomato soup"])
    parse_job_id: UUID | None = Field(default=None, description="The job it came from, which is committed with it.")


class IngredientShown(BaseModel):
    """An ingredient of a saved recipe."""

    id: int = Field(description="Its place in the recipe.")
    text: str
    quantity_display: str | None
    unit: str | None
    quantity_value: float | None = None
    quantity_to: float | None = None
    name: str | None = None
    note: str | None = None
    line: str | None = None
    section: str | None = None


class StepShown(BaseModel):
    """A step of a saved recipe."""

    id: int
    step_number: int
    text: str
    section: str | None = None


class TagShown(BaseModel):
    """A tag: the same name has the same id in every recipe."""

    id: int
    name: str


class RecipeShown(BaseModel):
    """A recipe somebody keeps."""

    id: int
    uuid: UUID = Field(description="Accepted wherever the id is.")
    user_id: str
    title: str
    description: str | None
    servings: int | None
    yields: str | None
    prep_time_minutes: int | None
    cook_time_minutes: int | None
    total_time_minutes: int | None
    source_type: SourceType
    source_url: str | None
    image_url: str | None
    author: str | None
    notes: str | None
    ingredients: list[IngredientShown]
    steps: list[StepShown]
    tags: list[TagShown]
    parse_job_id: UUID | None
    created_at: datetime
    updated_at: datetime


def show_recipe(recipe: SavedRecipe) -> dict[str, JSON]:
    """A saved recipe as its owner reads it."""
    body = recipe.body
    source_type = "manual" if recipe.parse_job_id is None else "url"
    return {
        "id": recipe.id,
        "uuid": str(recipe.uuid),
        "user_id": recipe.user_id,
        "title": recipe.title,
        **{name: body.get(name) for name in _AS_KEPT},
        **{name.replace("_minutes", "_time_minutes"): body.get(name) for name in _MINUTES},
        "source_type": body.get("source_type") or source_type,
        "ingredients": [_show_ingredient(place, part) for place, part in enumerate(body.get("ingredients") or (), 1)],
        "steps": [_show_step(place, step) for place, step in enumerate(body.get("steps") or (), 1)],
        "tags": [{"id": _tag_id(name), "name": name} for name in body.get("tags") or ()],
        "parse_job_id": None if recipe.parse_job_id is None else str(recipe.parse_job_id),
        "created_at": recipe.created_at,
        "updated_at": recipe.updated_at,
    }


def _show_ingredient(place: int, ingredient: JSON) -> dict[str, JSON]:
    """An ingredient that was kept as a line is that line."""
    parts = {"text": ingredient} if isinstance(ingredient, str) else ingredient
    names = (parts.get(name) for name in ("name", "note"))
    text = parts.get("text") or ", ".join(name for name in names if name) or parts.get("line") or ""
    return {"quantity_display": None, "unit": None, **parts, "id": place, "text": text}


def _show_step(place: int, step: JSON) -> dict[str, JSON]:
    parts = {"text": step} if isinstance(step, str) else step
    return {"id": place, "step_number": place, **parts}


def _in_order(steps: Sequence[SavedStep | str]) -> list[JSON]:
    """What is kept of steps by their numbers; one without is where it stands."""
    numbered_steps = [
        (place, step)
        if isinstance(step, str)
        else (place if step.step_number is None else step.step_number, step.as_kept())
        for place, step in enumerate(steps, 1)
    ]
    return [text for _, text in sorted(numbered_steps, key=lambda step: step[0])]


def _tag_id(name: str) -> int:
    """A number that JavaScript can hold, the same for a name wherever it is."""
    return int.from_bytes(hashlib.sha256(name.lower().encode("utf-8", "replace")).digest()[:6])
