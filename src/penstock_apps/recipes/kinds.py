"""The recipe kind: a page is fetched and read, unless it was read not long ago.

A page that a client has opened itself is not fetched. What comes of it is for who sent it: nobody else can tell whether
the site has ever said that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock import ItemContext, ItemStatus, JobContext, Permanent
from penstock.lifecycle import JSON
from penstock_apps.plurals import pluralize
from penstock_apps.recipes.payloads import PageInput, RecipeParams, RecipeResult, is_recipe_result

if TYPE_CHECKING:
    from penstock import Penstock
    from penstock_apps.recipes.page_reader import PageReader
    from penstock_apps.recipes.repository import KnownRecipe, RecipeRepository
    from penstock_apps.recipes.settings import RecipeSettings

RECIPE = "recipe"


def describe(result: JSON) -> str:
    """A recipe in a few words."""
    if not is_recipe_result(result):
        return ""
    recipe = result["recipe"]
    parts = (pluralize(len(recipe["ingredients"]), "ingredient"), pluralize(len(recipe["steps"]), "step"))
    return f"{recipe['title']}: {', '.join(parts)}"


class ParseRecipe:
    """Reads a page, unless somebody asked for it not long ago; the recipe is kept for everybody."""

    describe = staticmethod(describe)

    def __init__(
        self, app: Penstock, repository: RecipeRepository, settings: RecipeSettings, pages: PageReader
    ) -> None:
        self._app = app
        self._repository = repository
        self._settings = settings
        self._pages = pages

    async def process(self, item: ItemContext[RecipeParams, PageInput]) -> RecipeResult:
        """The recipe on the page."""
        return await self._pages.read(item)

    def plan(self, job: JobContext[RecipeParams, RecipeResult]) -> Iterator[PageInput]:
        """One item, or none where the recipe is known."""
        answer = self._repository.parser_answer(job.id) if self._settings.parsed_elsewhere else None
        if answer is not None and not answer.success:
            raise Permanent(answer.error_message or "the parser found nothing", code="PARSE_FAILED")
        if "page_sha256" in job.params or self._find_known(job.params) is None:
            yield {"url": job.params["url"]}

    def finalize(self, job: JobContext[RecipeParams, RecipeResult]) -> RecipeResult:
        """Keep what was read of a fetched page; of a page that was known, answer with what is kept."""
        url_hash = job.params["url_hash"]
        for item in job.items(ItemStatus.ERROR):
            raise Permanent(item.last_error or "", code=item.error_code)
        result = next(job.results(), None)
        if result is not None:
            llm_may_help = result.pop("llm_may_help", False)
            if "page_sha256" in job.params:
                return result
            self._app.in_transaction(
                lambda connection: self._repository.keep(connection, url_hash, result, llm_may_help=llm_may_help)
            )
            return result
        kept_result = self._repository.result(url_hash, llm_allowed=job.params["use_llm_fallback"])
        assert kept_result is not None, "a plan without items has found a fresh recipe"
        return kept_result

    def _find_known(self, params: RecipeParams) -> KnownRecipe | None:
        return self._repository.fresh(
            params["url_hash"], self._settings.ttl_days, llm_allowed=params["use_llm_fallback"]
        )
