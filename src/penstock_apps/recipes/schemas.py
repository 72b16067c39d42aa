"""The bodies of the recipes API, in the names its clients know."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from penstock.lifecycle import JSON
from penstock_apps.numbers import NUMBER

Text = Annotated[str, Field(max_length=10_000)]
Address = Annotated[str, Field(max_length=4096, examples=["https://example.com/soup"])]
Minutes = Annotated[int, Field(ge=0, le=1_000_000), NUMBER]
Servings = Annotated[int, Field(ge=1, le=1000), NUMBER]
Number = Annotated[float, Field(strict=True)]
_URL: dict[str, JSON] = {"examples": [{"url": "https://example.com/soup"}]}
_RECIPE: dict[str, JSON] = {
    "examples": [{"title": "Tomato soup", "ingredients": ["2 tbsp olive oil"], "steps": ["Warm the oil."]}]
}
Status = Literal["PENDING", "RUNNING", "COMPLETE", "ERROR", "CANCELED", "COMMITTED", "ABANDONED"]


class ParseUrl(BaseModel):
    """A page to parse."""

    model_config = ConfigDict(json_schema_extra=_URL)
    url: Address
    use_llm_fallback: bool = Field(
        default=True, strict=True, description="May a language model be asked where nothing else helps?"
    )


class ParseStarted(BaseModel):
    """The job that does it."""

    id: UUID
    status: Status


class ParseStatus(BaseModel):
    """How a job stands."""

    id: UUID
    status: Status
    result: dict[str, JSON] | None = Field(description="What was parsed, once there is something.")
    error_code: str | None
    error_message: str | None


class Preview(BaseModel):
    """What a card in the mailbox shows."""

    title: str | None
    source_host: str | None


class MailboxJob(BaseModel):
    """A job that waits for its owner."""

    id: UUID
    job_type: str = Field(description="`url`; an imported job may be `ocr` or `social`.", examples=["url"])
    url: str | None
    status: Status
    completed_at: datetime | None
    expires_at: datetime | None = Field(description="When it is abandoned if nobody saves it; null if never.")
    warnings: list[str]
    preview: Preview


class Mailbox(BaseModel):
    """A page of them."""

    jobs: list[MailboxJob]
    next: str | None = Field(description="What to ask for as `cursor` to see the next page; null on the last.")


class Canceled(BaseModel):
    """A job that was canceled."""

    id: UUID
    status: Literal["CANCELED"]


class SavedIngredient(BaseModel):
    """A line of a saved recipe's ingredients."""

    model_config = ConfigDict(extra="forbid")
    text: str | None = Field(default=None, max_length=1000)
    quantity: Number | None = None
    quantity_to: Number | None = None
    unit: str | None = Field(default=None, max_length=100)
    name: str | None = Field(default=None, max_length=1000)
    note: str | None = Field(default=None, max_length=1000)


class RecipeChange(BaseModel):
    """What may be changed of a saved recipe; what is not given stays as it is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_RECIPE)
    title: str | None = Field(default=None, min_length=1, max_length=500, examples=["Tomato soup"])
    description: Text | None = None
    ingredients: list[SavedIngredient | Annotated[str, Field(max_length=1000)]] | None = Field(
        default=None, max_length=500, examples=[["2 cups flour"]]
    )
    steps: list[Text] | None = Field(default=None, max_length=500, examples=[["Mix.", "Bake."]])
    servings: Servings | None = None
    yields: str | None = Field(default=None, max_length=500)
    prep_minutes: Minutes | None = None
    cook_minutes: Minutes | None = None
    total_minutes: Minutes | None = None
    image_url: str | None = Field(default=None, max_length=2048)
    source_url: str | None = Field(default=None, max_length=2048)
    author: str | None = Field(default=None, max_length=500)
    notes: Text | None = None
    tags: list[Annotated[str, Field(max_length=100)]] | None = Field(default=None, max_length=100)


class RecipeCreate(RecipeChange):
    """A recipe to keep."""

    title: str = Field(min_length=1, max_length=500, examples=["Tomato soup"])
    parse_job_id: UUID | None = Field(default=None, description="The job it came from, which is committed with it.")


class RecipeShown(BaseModel):
    """A recipe somebody keeps."""

    id: UUID
    title: str
    description: str | None = None
    ingredients: list[dict[str, JSON] | str]
    steps: list[str]
    servings: int | None = None
    yields: str | None = None
    prep_minutes: int | None = None
    cook_minutes: int | None = None
    total_minutes: int | None = None
    image_url: str | None = None
    source_url: str | None = None
    author: str | None = None
    notes: str | None = None
    tags: list[str]
    parse_job_id: UUID | None
    created_at: datetime
    updated_at: datetime


class RecipesShown(BaseModel):
    """A page of somebody's recipes."""

    recipes: list[RecipeShown]
    next: str | None = Field(description="What to ask for as `cursor` to see the next page; null on the last.")


class RequestedUrl(BaseModel):
    """A page to parse."""

    model_config = ConfigDict(json_schema_extra=_URL)
    url: Address


class ParsedShown(BaseModel):
    """A recipe, in the fields of the parse requests."""

    title: str | None
    ingredients: list[dict[str, JSON]]
    parsedAt: datetime  # noqa: N815 - the names are the clients'


class RequestShown(BaseModel):
    """A request, or the recipe itself; what there is nothing to say about is left out."""

    requestId: UUID | None = None  # noqa: N815
    status: Literal["PENDING", "PROCESSING", "COMPLETED", "FAILED"] | None = None
    recipe: ParsedShown | None = None
    error: str | None = None


class RequestListed(BaseModel):
    """A request in somebody's history."""

    requestId: UUID  # noqa: N815
    url: str | None
    status: Literal["PENDING", "PROCESSING", "COMPLETED", "FAILED"]
    createdAt: datetime  # noqa: N815
    error: str | None


class RequestsListed(BaseModel):
    """A page of them."""

    requests: list[RequestListed]
    next: str | None


class RequestNotFound(BaseModel):
    """There is no such request, or it is somebody else's."""

    error: Literal["Request not found"]
    code: str
    message: str
