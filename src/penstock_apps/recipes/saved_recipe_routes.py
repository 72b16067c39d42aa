"""Saved recipes over HTTP, in the form of the queue's client."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Header, Path, Query, Request
from starlette.responses import Response

from penstock.errors import InvalidInput
from penstock.http import (
    Json,
    Router,
    SignedIn,
    Submitting,
    documented,
    link_to_next,
    read_cursor,
    written_cursor,
)
from penstock.lifecycle import JSON
from penstock_apps.recipes.etags import etag_of, require_match
from penstock_apps.recipes.repository import SavedRecipe
from penstock_apps.recipes.saved_recipes import RecipeChange, RecipeCreate, RecipeShown, show_recipe
from penstock_apps.recipes.service import Recipes

_PAGE = 200
"""The client asks for all of its recipes, and does not look whether there are more."""
_LARGEST = 2**63 - 1
RecipeId = Annotated[
    Annotated[int, Path(ge=0, le=_LARGEST)] | UUID, Path(description="The number of a recipe, or its UUID.")
]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=1_000,
        description="Only if it still is what this `ETag` of an earlier answer says; several, or `*`, may be given.",
    ),
]
_READ_PROBLEMS = documented(401, 404, 422, 503)


def saved_recipe_routes(recipes: Recipes) -> Router:
    """The addresses of what people keep."""
    routes = Router(prefix="/recipes", tags=["recipes"])

    @routes.post(
        "", status_code=201, summary="Save a recipe", response_model=RecipeShown,
        responses=documented(400, 401, 404, 409, 413, 422, 429, 503),
    )  # fmt: skip
    def save_recipe(body: RecipeCreate, who: Submitting) -> Response:
        """With `parse_job_id`, the job it came from is committed in the same transaction: both, or neither."""
        fields = {name: value for name, value in body.as_kept().items() if value is not None}
        return _answer(recipes.save(who.user or "", body.title, fields, body.parse_job_id), 201)

    @routes.get("", summary="Your recipes", response_model=list[RecipeShown], responses=documented(401, 422, 503))
    def list_recipes(
        request: Request,
        who: SignedIn,
        cursor: Annotated[str | None, Query(max_length=200, description="As the header `Link` has it.")] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = _PAGE,
    ) -> Response:
        """Newest first. Where there are more, the header `Link` leads to them with `rel="next"`."""
        found_recipes = recipes.repository.all_saved(who.user or "", after=_after(cursor), limit=limit + 1)
        page, headers = found_recipes[:limit], {}
        if len(found_recipes) > limit:
            headers = link_to_next(request, cursor=written_cursor(page[-1].created_at, page[-1].uuid))
        return Json([show_recipe(recipe) for recipe in page], headers=headers)

    @routes.get("/{recipe_id}", summary="One recipe", response_model=RecipeShown, responses=_READ_PROBLEMS)
    def get_recipe(recipe_id: RecipeId, who: SignedIn) -> Response:
        """As it was saved. The header `ETag` says which state of it this is."""
        return _answer(recipes.repository.get_saved(recipe_id, who.user or ""))

    @routes.patch(
        "/{recipe_id}", summary="Change a recipe", response_model=RecipeShown,
        responses=documented(400, 401, 404, 412, 413, 422, 503),
    )  # fmt: skip
    def change_recipe(recipe_id: RecipeId, body: RecipeChange, who: SignedIn, if_match: IfMatch = None) -> Response:
        """What is left out stays as it is; what is null is removed.

        Two changes at once of different fields are both kept, also without `If-Match`.
        """

        def change(before: SavedRecipe) -> tuple[str, dict[str, JSON]]:
            require_match(if_match, before)
            title = body.title if "title" in body.model_fields_set else before.title
            if title is None:
                raise InvalidInput("a recipe has a title", field="title")
            fields = {**before.body, **body.as_kept()}
            return title, {name: value for name, value in fields.items() if value is not None}

        return _answer(recipes.repository.change(recipe_id, who.user or "", change))

    @routes.delete(
        "/{recipe_id}", status_code=204, summary="Remove a recipe", responses=documented(401, 404, 412, 422, 503)
    )
    def delete_recipe(recipe_id: RecipeId, who: SignedIn, if_match: IfMatch = None) -> Response:
        """It is gone for good."""
        recipes.repository.remove(recipe_id, who.user or "", lambda before: require_match(if_match, before))
        return Response(status_code=204)

    return routes


def _answer(recipe: SavedRecipe, status: int = 200) -> Response:
    return Json(show_recipe(recipe), status, headers={"ETag": etag_of(recipe)})


def _after(cursor: str | None) -> tuple[datetime, UUID] | None:
    if cursor is None:
        return None
    place = read_cursor(cursor)
    return place.created_at, place.id
