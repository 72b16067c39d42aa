"""A recipe as it was found on a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from penstock_apps.recipes.parsing.ingredients import Ingredient
from penstock_apps.recipes.payloads import RecipeData, RecipeResult


@dataclass(slots=True)
class ParsedRecipe:
    """What a page says; lists are empty and values None where it says nothing."""

    title: str
    description: str | None = None
    ingredients: list[Ingredient] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    step_sections: list[str | None] = field(default_factory=list)
    """The section of each step; empty where none has one."""
    servings: int | None = None
    yields: str | None = None
    prep_minutes: int | None = None
    cook_minutes: int | None = None
    total_minutes: int | None = None
    image_url: str | None = None
    tags: list[str] = field(default_factory=list)
    author: str | None = None
    is_cut: bool = False
    """Were there more ingredients or steps than anybody reads?"""

    def __post_init__(self) -> None:
        """What took no time of its own takes as long as its parts do."""
        if self.total_minutes is None and (self.prep_minutes or self.cook_minutes):
            self.total_minutes = (self.prep_minutes or 0) + (self.cook_minutes or 0)

    def as_json(self, address: str) -> RecipeData:
        """For the database and the API."""
        return {
            "title": self.title,
            "description": self.description,
            "ingredients": [ingredient.as_json() for ingredient in self.ingredients],
            "steps": self.steps,
            "step_sections": self.step_sections,
            "servings": self.servings,
            "yields": self.yields,
            "prep_time_minutes": self.prep_minutes,
            "cook_time_minutes": self.cook_minutes,
            "total_time_minutes": self.total_minutes,
            "estimated_time_minutes": self.total_minutes,
            "image_url": self.image_url,
            "tags": self.tags,
            "notes": [],  # pages have no words for them
            "author": self.author,
            "source_url": address,
        }

    @property
    def is_whole(self) -> bool:
        """Has it what makes a recipe?"""
        return bool(self.title and self.ingredients and self.steps)

    @property
    def weight(self) -> tuple[bool, int]:
        """How much it says, to choose the fullest of several."""
        return self.is_whole, len(self.ingredients) + len(self.steps)


@dataclass(frozen=True, slots=True)
class FoundRecipe:
    """A recipe, how it was found, and what to be careful about."""

    recipe: ParsedRecipe
    strategy: str
    used_llm: bool = False
    warnings: tuple[str, ...] = ()
    llm_may_help: bool = False
    """Is it part of a recipe, and is there a model that has not answered?"""

    def as_json(self, address: str) -> RecipeResult:
        """A job's result, of a page that was just read."""
        return {
            "success": True,
            "recipe": self.recipe.as_json(address),
            "used_llm": self.used_llm,
            "parser_strategy": self.strategy,
            "warnings": list(self.warnings),
            "parsed_at": datetime.now(UTC).isoformat(),
        }
