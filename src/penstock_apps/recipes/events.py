"""The messages of parsers elsewhere: each has its effect once, and one that cannot have it is refused with the reason.

A message may come twice, late, for a request that is over, for one that never was, or not be readable at all. None of
that stops the messages behind it. A parser says when it begins with a request, and then how it ended; one that begins
and never ends is not waited for longer than RECIPE_PARSE_STALE_MINUTES.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from penstock import SYSTEM, Job, JobState, Penstock
from penstock.app import Message
from penstock.errors import JobNotFound, MessageRefused, TransitionRefused
from penstock.store import DatabaseConnection
from penstock_apps.recipes.parser_messages import ParseResult, ParseStart, read_answer
from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.language_model import WARNING
from penstock_apps.recipes.parsing.recipe import FoundRecipe, ParsedRecipe
from penstock_apps.recipes.payloads import RecipeParams
from penstock_apps.recipes.service import Recipes
from penstock_apps.recipes.settings import RecipeSettings

STRATEGY = "elsewhere"
_SUBSCRIBER = "recipes"
_REFUSED_LLM = "the parser asked a language model, which the request refused"
_log = structlog.get_logger("penstock.recipes")


class Results:
    """The consumer of ``parse-results``."""

    def __init__(self, app: Penstock, recipes: Recipes) -> None:
        self._app = app
        self._recipes = recipes
        app.messages.subscribe(recipes.settings.results_topic)(self.take)
        app.system.in_each_sweep(self.fail_stale)

    def take(self, message: Message) -> None:
        """Apply one message, or refuse it."""
        answer = read_answer(message.payload)
        job, params = self._request_of(answer)
        apply = self._note_start(answer, job) if isinstance(answer, ParseStart) else self._keep_result(answer, params)

        def operation(connection: DatabaseConnection) -> bool:
            is_new = self._app.messages.accept(message, subscriber=_SUBSCRIBER, connection=connection)
            return is_new and apply(connection)

        self._apply(operation, answer.requestId)

    def fail_stale(self) -> None:
        """End the requests whose parser began too long ago and has not answered."""
        settings = self._recipes.settings
        if not settings.parsed_elsewhere:
            return
        before = datetime.now(UTC) - timedelta(minutes=settings.stale_minutes)
        reason = f"the parser has begun, and not answered within {settings.stale_minutes:g} minutes"
        for request_id in self._recipes.repository.stale_starts(before):
            self._apply(self._end(request_id, success=False, error_message=reason), request_id)

    def _request_of(self, answer: ParseStart | ParseResult) -> tuple[Job, RecipeParams]:
        """The request that a message is about, and what it asked for."""
        try:
            job = self._recipes.get(answer.requestId, by=SYSTEM)
        except JobNotFound:
            raise MessageRefused("there is no such request") from None
        params = self._recipes.kind.params(job)
        if "pictures" in params or params.get("url_hash") != answer.urlHash:
            raise MessageRefused("it is about another page than its request")
        return job, params

    def _note_start(self, start: ParseStart, job: Job) -> Callable[[DatabaseConnection], bool]:
        def operation(connection: DatabaseConnection) -> bool:
            if job.state is JobState.CREATED:  # it has not ended, and is not parsed here
                self._recipes.repository.note_start(connection, start.requestId)
            return True

        return operation

    def _keep_result(self, result: ParseResult, params: RecipeParams) -> Callable[[DatabaseConnection], bool]:
        """What a model made is no answer for who refused one; it is kept all the same, for those who allow it."""
        is_unwanted = result.success and result.usedLlm and not params["use_llm_fallback"]
        error_message = _REFUSED_LLM if is_unwanted else result.errorMessage
        end = self._end(result.requestId, success=result.success and not is_unwanted, error_message=error_message)

        def operation(connection: DatabaseConnection) -> bool:
            if not end(connection):
                return False
            if result.success:
                recipe = _found_recipe(result).as_json(params["url"])
                self._recipes.repository.keep(connection, result.urlHash, recipe)
            return True

        return operation

    def _end(
        self, request_id: UUID, *, success: bool, error_message: str | None
    ) -> Callable[[DatabaseConnection], bool]:
        """The answer and the job's release are one transaction; a second answer changes nothing."""

        def operation(connection: DatabaseConnection) -> bool:
            repository = self._recipes.repository
            is_first = repository.keep_parser_answer(
                connection, request_id, success=success, error_message=error_message
            )
            if is_first:
                self._app.acting_as(SYSTEM).jobs.release(request_id, connection=connection)
            return is_first

        return operation

    def _apply(self, operation: Callable[[DatabaseConnection], bool], request_id: UUID) -> None:
        try:
            is_first = self._app.in_transaction(operation)
        except TransitionRefused:  # canceled meanwhile, or parsed here
            is_first = False
            self._app.in_transaction(lambda connection: self._recipes.repository.forget_start(connection, request_id))
        if not is_first:
            _log.info("a parser's answer came too late or twice", request=str(request_id))


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
