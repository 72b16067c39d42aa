"""The recipe kind: a page is fetched and read, unless it was read not long ago.

A page that a client has opened itself is not fetched. What comes of it is for who sent it: nobody else can tell whether
the site has ever said that. So it is with photos of a recipe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock import ItemStatus, JobContext, Permanent
from penstock.lifecycle import JSON
from penstock_apps.plurals import pluralize
from penstock_apps.recipes.payloads import JobInput, JobParams, RecipeParams, RecipeResult, is_recipe_result

if TYPE_CHECKING:
    from penstock import Penstock
    from penstock_apps.recipes.page_reader import PageReader
    from penstock_apps.recipes.payloads import RecipeItem
    from penstock_apps.recipes.photo_reader import PhotoReader
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
        self,
        app: Penstock,
        repository: RecipeRepository,
        settings: RecipeSettings,
        pages: PageReader,
        photos: PhotoReader,
    ) -> None:
        self._app = app
        self._repository = repository
        self._settings = settings
        self._pages = pages
        self._photos = photos

    async def process(self, item: RecipeItem) -> RecipeResult:
        """The recipe on the page, or on the photos."""
        params = item.params
        if "pictures" in params:
            return await self._photos.read(item, params)
        return await self._pages.read(item, params)

    def plan(self, job: JobContext[JobParams, RecipeResult]) -> Iterator[JobInput]:
        """One item, or none where the recipe is known."""
        params = job.params
        if "pictures" in params:
            yield {"pictures": len(params["pictures"])}
            return
        answer = self._repository.parser_answer(job.id) if self._settings.parsed_elsewhere else None
        if answer is not None and not answer.success:
            raise Permanent(answer.error_message or "the parser found nothing", code="PARSE_FAILED")
        if "page_sha256" in params or self._find_known(params) is None:
            yield {"url": params["url"]}

    def finalize(self, job: JobContext[JobParams, RecipeResult]) -> RecipeResult:
        """Keep what was read of a fetched page; of a page that was known, answer with what is kept."""
        params = job.params
        for item in job.items(ItemStatus.ERROR):
            raise Permanent(item.last_error or "", code=item.error_code)
        result = next(job.results(), None)
        if result is not None:
            llm_may_help = result.pop("llm_may_help", False)
            if "pictures" in params or "page_sha256" in params:
                return result
            url_hash = params["url_hash"]
            self._app.in_transaction(
                lambda connection: self._repository.keep(connection, url_hash, result, llm_may_help=llm_may_help)
            )
            return result
        assert "url_hash" in params, "a job for photos has an item"
        kept_result = self._repository.result(params["url_hash"], llm_allowed=params["use_llm_fallback"])
        assert kept_result is not None, "a plan without items has found a fresh recipe"
        return kept_result

    def _find_known(self, params: RecipeParams) -> KnownRecipe | None:
        return self._repository.fresh(
            params["url_hash"], self._settings.ttl_days, llm_allowed=params["use_llm_fallback"]
        )
