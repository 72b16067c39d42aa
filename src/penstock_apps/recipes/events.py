"""What parsers elsewhere tell: each word is taken once, and what cannot be taken is put aside with the reason.

A message may come twice, late, for a request that is over, for one that never was, or not be readable at all. None of
that stops the messages behind it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import structlog
from pydantic import BaseModel, Field, ValidationError

from penstock import SYSTEM, JobNotFound, Message, Penstock, TransitionRefused, storable_texts
from penstock_apps.recipes.parsing.ingredients import understood
from penstock_apps.recipes.parsing.parsed import Found, ParsedRecipe
from penstock_apps.recipes.service import Recipes
from penstock_apps.recipes.settings import RecipeSettings

STRATEGY = "elsewhere"
_log = structlog.get_logger("penstock.recipes")


class Told(BaseModel):
    """One message of ``parse-results``."""

    requestId: UUID  # noqa: N815 - the names are the message's
    urlHash: str = Field(pattern="^[0-9a-f]{64}$")  # noqa: N815
    success: bool
    errorMessage: str | None = Field(default=None, max_length=10_000)  # noqa: N815
    title: str | None = Field(default=None, max_length=500)
    ingredients: list[dict[str, Any]] = Field(default_factory=list, max_length=500)


class Results:
    """The consumer of ``parse-results``."""

    def __init__(self, app: Penstock, recipes: Recipes) -> None:
        self._app = app
        self._recipes = recipes
        app.subscribe(recipes.settings.results_topic)(self.take)

    def take(self, message: Message) -> None:
        """Apply one message, or put it aside."""
        try:
            told = Told.model_validate(storable_texts(message.payload))
        except ValidationError as error:
            self._put_aside(message, f"it cannot be read: {error.error_count()} fields are wrong")
            return
        try:
            job = self._recipes.get(told.requestId, by=SYSTEM)
        except JobNotFound:
            self._put_aside(message, "there is no such request")
            return
        params: Any = job.params
        if params["url_hash"] != told.urlHash:
            self._put_aside(message, "it is about another page than its request")
            return
        self._apply(told, params["url"])

    def _apply(self, told: Told, url: str) -> None:
        """The word, the recipe and the job's release are one transaction; a second word changes nothing."""

        def operation(link: Any) -> bool:
            repository = self._recipes.repository
            if not repository.hear(link, told.requestId, success=told.success, error_message=told.errorMessage):
                return False
            if told.success:
                repository.keep(link, told.urlHash, _found(told).as_json(url))
            self._app.release(told.requestId, connection=link)
            return True

        try:
            fresh = self._app.in_transaction(operation)
        except TransitionRefused:
            fresh = False  # canceled meanwhile, or parsed here
        if not fresh:
            _log.info("a parser's word came too late or twice", request=str(told.requestId))

    def _put_aside(self, message: Message, reason: str) -> None:
        _log.warning("a parser's word was put aside", reason=reason)
        dead = f"{self._recipes.settings.results_topic}-dead-letters"
        self._app.publish(dead, {"reason": reason, "message": message.payload}, key=message.key)


def install(app: Penstock, settings: RecipeSettings) -> Recipes:
    """The application, with its consumer of results."""
    recipes = Recipes(app, settings)
    Results(app, recipes)
    return recipes


def _found(told: Told) -> Found:
    """A recipe as a parser elsewhere has it: quantities, units and names, and no text of the page."""
    ingredients = []
    for one in told.ingredients:
        parts = (one.get("quantity"), one.get("unit"), one.get("name"))
        ingredients.append(understood(" ".join(str(part) for part in parts if part not in (None, ""))))
    return Found(ParsedRecipe(told.title or "", ingredients=ingredients), STRATEGY)
