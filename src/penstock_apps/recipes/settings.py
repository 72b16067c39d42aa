"""How long recipes are fresh, who parses pages, and the limits of fetching one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr, model_validator

from penstock.application import ApplicationSettings, Bytes, Names, Seconds
from penstock_apps.recipes.parsing.language_model import LanguageModel
from penstock_apps.recipes.parsing.limits import FetchLimits

_FETCH = FetchLimits()
_LONGEST = 1_000_000


class RecipeSettings(ApplicationSettings):
    """The settings of the recipes application, by the names of both specifications."""

    ttl_days: Annotated[
        float,
        Field(
            validation_alias="RECIPE_TTL_DAYS",
            gt=0,
            lt=_LONGEST,
            description="How long a parsed page is fresh, in days.",
        ),
    ] = 30.0
    abandon_minutes: Annotated[
        float,
        Field(
            validation_alias="RECIPE_PARSE_JOB_ABANDON_MINUTES",
            gt=0,
            lt=_LONGEST,
            description="How long a finished job waits to be saved, in minutes.",
        ),
    ] = 4320.0
    stale_minutes: Annotated[
        float,
        Field(
            validation_alias="RECIPE_PARSE_STALE_MINUTES",
            gt=0,
            lt=_LONGEST,
            description="A parse that takes longer than this has failed, in minutes.",
        ),
    ] = 15.0
    prune_results: Annotated[
        bool,
        Field(
            validation_alias="RECIPE_PARSE_JOB_PRUNE_RESULTS",
            description="Whether the result of an abandoned job is dropped.",
        ),
    ] = False
    parsed_elsewhere: Annotated[
        bool,
        Field(
            validation_alias="RECIPE_PARSED_ELSEWHERE",
            description="Whether other programs parse the pages, which read the topic of requests.",
        ),
    ] = False
    requests_topic: Annotated[
        str, Field(validation_alias="KAFKA_TOPIC_PARSE_REQUEST", description="The topic requests are sent to.")
    ] = "parse-requests"
    results_topic: Annotated[
        str, Field(validation_alias="KAFKA_TOPIC_PARSE_RESULT", description="The topic results are read from.")
    ] = "parse-results"
    fetch_allow_hosts: Annotated[
        Names,
        Field(
            validation_alias="PENSTOCK_FETCH_ALLOW_HOSTS",
            description="Private hosts that may be fetched from all the same, separated by commas.",
        ),
    ] = ()
    fetch_timeout: Annotated[
        Seconds,
        Field(
            validation_alias="PENSTOCK_FETCH_TIMEOUT",
            description="The longest a page may take to come, with all redirects and to its last byte.",
        ),
    ] = _FETCH.seconds
    fetch_max_bytes: Annotated[
        Bytes, Field(validation_alias="PENSTOCK_FETCH_MAX_BYTES", description="The largest page.")
    ] = _FETCH.bytes
    llm_url: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_LLM_URL",
            pattern="^(https?://.*)?$",
            description="An OpenAI-compatible endpoint for pages nothing else can read.",
        ),
    ] = ""
    llm_model: Annotated[str, Field(validation_alias="PENSTOCK_LLM_MODEL", description="The model asked there.")] = ""
    llm_key: Annotated[SecretStr, Field(validation_alias="PENSTOCK_LLM_KEY", description="The key to it.")] = SecretStr(
        ""
    )

    photo_max_bytes: Annotated[
        Bytes,
        Field(validation_alias="RECIPE_PHOTO_MAX_BYTES", description="The largest file of a photo of a recipe."),
    ] = 20 * 1024**2
    photo_max_pixels: Annotated[
        int,
        Field(
            validation_alias="RECIPE_PHOTO_MAX_PIXELS",
            ge=1,
            description="The most pixels of a photo of a recipe; it is looked at before any of them is made.",
        ),
    ] = 50_000_000
    photo_timeout: Annotated[
        Seconds,
        Field(
            validation_alias="RECIPE_PHOTO_TIMEOUT",
            description="The longest it may take to read one photo; its process is killed then.",
        ),
    ] = 60.0
    photo_memory: Annotated[
        Bytes,
        Field(
            validation_alias="RECIPE_PHOTO_MEMORY",
            description="The most memory of the process that reads photos; one that needs more fails.",
        ),
    ] = 1536 * 1024**2

    @model_validator(mode="after")
    def _require_model(self) -> RecipeSettings:
        if self.llm_url and not self.llm_model:
            raise ValueError("PENSTOCK_LLM_URL is set, and PENSTOCK_LLM_MODEL does not say which model to ask")
        return self

    @property
    def fetch_limits(self) -> FetchLimits:
        """What fetching a page may take."""
        return FetchLimits(seconds=self.fetch_timeout, bytes=self.fetch_max_bytes, allowed_hosts=self.fetch_allow_hosts)

    @property
    def language_model(self) -> LanguageModel | None:
        """The model to ask where nothing else can read a page; None without an address."""
        if not self.llm_url:
            return None
        return LanguageModel(self.llm_url, self.llm_model, self.llm_key.get_secret_value() or None)
