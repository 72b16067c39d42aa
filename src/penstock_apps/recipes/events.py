"""The messages of parsers elsewhere: each is applied once, and one that cannot be is put aside with the reason.

A message may come twice, late, for a request that is over, for one that never was, or not be readable at all. None of
that stops the messages behind it.
"""

from __future__ import annotations

from uuid import UUID

import structlog
from pydantic import BaseModel, Field, ValidationError

from penstock import SYSTEM, Penstock
from penstock.app import Message
from penstock.errors import JobNotFound, TransitionRefused
from penstock.lifecycle import JSON, storable_texts
from penstock.store import DatabaseConnection
from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.language_model import WARNING
from penstock_apps.recipes.parsing.recipe import FoundRecipe, ParsedRecipe
from penstock_apps.recipes.payloads import RecipeParams
from penstock_apps.recipes.service import Recipes
from penstock_apps.recipes.settings import RecipeSettings

STRATEGY = "elsewhere"
_REFUSED_LLM = "the parser asked a language model, which the request refused"
_log = structlog.get_logger("penstock.recipes")


class ParseResult(BaseModel):
    """One message of ``parse-results``."""

    requestId: UUID  # noqa: N815 - the names are the message's
    urlHash: str = Field(pattern="^[0-9a-f]{64}$")  # noqa: N815
    success: bool
    errorMessage: str | None = Field(default=None, max_length=10_000)  # noqa: N815
    usedLlm: bool = False  # noqa: N815
    title: str | None = Field(default=None, max_length=500)
    ingredients: list[dict[str, JSON]] = Field(default_factory=list, max_length=500)


class Results:
    """The consumer of ``parse-results``."""

    def __init__(self, app: Penstock, recipes: Recipes) -> None:
        self._app = app
        self._recipes = recipes
        app.messages.subscribe(recipes.settings.results_topic)(self.take)

    def take(self, message: Message) -> None:
        """Apply one message, or put it aside."""
        try:
            result = ParseResult.model_validate(storable_texts(message.payload))
        except ValidationError as error:
            self._put_aside(message, f"it cannot be read: {error.error_count()} fields are wrong")
            return
        try:
            job = self._recipes.get(result.requestId, by=SYSTEM)
        except JobNotFound:
            self._put_aside(message, "there is no such request")
            return
        params = self._recipes.kind.params(job)
        if params["url_hash"] != result.urlHash:
            self._put_aside(message, "it is about another page than its request")
            return
        self._apply(result, params)

    def _apply(self, result: ParseResult, params: RecipeParams) -> None:
        """The answer, the recipe and the job's release are one transaction; a second answer changes nothing.

        What a model made is no answer for who refused one; it is kept all the same, for those who allow it.
        """
        is_unwanted = result.success and result.usedLlm and not params["use_llm_fallback"]
        error_message = _REFUSED_LLM if is_unwanted else result.errorMessage

        def operation(connection: DatabaseConnection) -> bool:
            repository = self._recipes.repository
            if not repository.keep_parser_answer(
                connection, result.requestId, success=result.success and not is_unwanted, error_message=error_message
            ):
                return False
            if result.success:
                repository.keep(connection, result.urlHash, _found_recipe(result).as_json(params["url"]))
            self._app.acting_as(SYSTEM).jobs.release(result.requestId, connection=connection)
            return True

        try:
            is_first = self._app.in_transaction(operation)
        except TransitionRefused:
            is_first = False  # canceled meanwhile, or parsed here
        if not is_first:
            _log.info("a parser's answer came too late or twice", request=str(result.requestId))

    def _put_aside(self, message: Message, reason: str) -> None:
        _log.warning("a parser's answer was put aside", reason=reason)
        dead = f"{self._recipes.settings.results_topic}-dead-letters"
        self._app.messages.publish(dead, {"reason": reason, "message": message.payload}, key=message.key)


def install(app: Penstock, settings: RecipeSettings) -> Recipes:
    """The application, with its consumer of results."""
    recipes = Recipes(app, settings)
    Results(app, recipes)
    return recipes


def _found_recipe(result: ParseResult) -> FoundRecipe:
    """A recipe as a parser elsewhere has it: quantities, units and names, and no text of the page."""
    ingredients = []
    for ingredient in result.ingredients:
        parts = (ingredient.get("quantity"), ingredient.get("unit"), ingredient.get("name"))
        ingredients.append(read_ingredient(" ".join(str(part) for part in parts if part not in (None, ""))))
    recipe = ParsedRecipe(result.title or "", ingredients=ingredients)
    return FoundRecipe(recipe, STRATEGY, used_llm=result.usedLlm, warnings=(WARNING,) if result.usedLlm else ())
