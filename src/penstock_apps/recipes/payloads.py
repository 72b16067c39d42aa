"""What recipe jobs hold: their params, the input of their item, and their result."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NotRequired, TypeAlias, TypedDict, TypeGuard, final

from penstock.lifecycle import JSON

if TYPE_CHECKING:
    from penstock import ItemContext


@final
class RecipeParams(TypedDict):
    """What a job is submitted with."""

    url: str
    """The address as it was given, which is fetched."""
    url_hash: str
    """The key of its normalized form, by which the page is found."""
    use_llm_fallback: bool
    share: NotRequired[str]
    """Whose share of the places it counts to, where its owner does not say that: a group of guests."""
    page_sha256: NotRequired[str]
    """The kept file with the page, where a client has opened it itself."""
    job_type: NotRequired[str]
    """What an imported job was in the old queue: url, ocr or social."""
    imported: NotRequired[bool]


class PictureParam(TypedDict):
    """A picture that was sent: the kept file, and what its sender called it."""

    sha256: str
    name: str


@final
class PhotoParams(TypedDict):
    """What a job is submitted with whose recipe is on photos."""

    job_type: str
    """Always ``ocr``."""
    pictures: list[PictureParam]
    """In their order: a page or a card may go over several."""
    title_hint: str | None
    use_llm_fallback: bool
    share: NotRequired[str]


class PageInput(TypedDict):
    """The one item of a job: the page to read."""

    url: str


class PhotoInput(TypedDict):
    """The one item of a job for photos; the pictures are in the job's params."""

    pictures: int


class PhotoResult(TypedDict):
    """A picture as people are shown it: upright, as a JPEG without what the camera wrote into it."""

    file_id: str
    width: int
    height: int


JobParams: TypeAlias = "RecipeParams | PhotoParams"
JobInput: TypeAlias = "PageInput | PhotoInput"
RecipeItem: TypeAlias = "ItemContext[JobParams, JobInput]"


class IngredientData(TypedDict):
    """A line of the ingredients, understood as far as it goes."""

    text: str
    """What it is, without the amount; the whole line where no amount was understood."""
    quantity: str | None
    """The amount as a person writes it: "1 1/2", "2-3"."""
    quantity_display: str | None
    """The same, by the name which the queue's client knows."""
    quantity_value: float | None
    quantity_to: float | None
    """The upper end of a range."""
    unit: str | None
    name: str
    note: str | None
    line: str
    """The line as it stands on the page."""
    section: NotRequired[str | None]
    """What it is for: "For the sauce"; results of older versions do not say."""


class RecipeData(TypedDict):
    """A recipe as it was found on a page."""

    title: str
    description: str | None
    ingredients: list[IngredientData]
    steps: list[str]
    step_sections: NotRequired[list[str | None]]
    """The section of each step; empty where none has one."""
    servings: int | None
    yields: str | None
    prep_time_minutes: int | None
    cook_time_minutes: int | None
    total_time_minutes: int | None
    estimated_time_minutes: int | None
    """The total, or what preparing and cooking take together."""
    image_url: str | None
    tags: list[str]
    notes: list[str]
    author: str | None
    source_url: str | None
    """None of a recipe that was read from photos."""


class RecipeResult(TypedDict):
    """What comes of a job, and of its item."""

    success: bool
    recipe: RecipeData
    used_llm: bool
    parser_strategy: str
    warnings: list[str]
    parsed_at: NotRequired[str]
    """When the page was read (ISO 8601); jobs of older versions and imported ones do not say."""
    photos: NotRequired[list[PhotoResult]]
    """The pictures it was read from, to be asked for by their numbers."""
    llm_may_help: NotRequired[bool]
    """Of an item alone: the page says only part of a recipe, and the model that there is has not answered."""


def work_key(url_hash: str, *, use_llm_fallback: bool) -> str:
    """What two jobs that do the same work have in common: the page, and whether a model may be asked.

    Who refuses a model cannot share the work of who allows it: how it will end is not known while it runs.
    """
    return url_hash if use_llm_fallback else f"{url_hash}:page-alone"


def parsed_moment(result: RecipeResult) -> datetime | None:
    """When the page was read; None where the result does not say it as we do."""
    try:
        moment = datetime.fromisoformat(result.get("parsed_at", ""))
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else None


def is_recipe_result(value: JSON) -> TypeGuard[RecipeResult]:
    """Is it a recipe? The result of an imported job may be anything."""
    return isinstance(value, dict) and isinstance(value.get("recipe"), dict)
