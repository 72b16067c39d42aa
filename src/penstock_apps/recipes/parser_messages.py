"""What Penstock and the parsers elsewhere say to each other: requests, that one is begun, and results."""

from __future__ import annotations

from typing import Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field, ValidationError

from penstock.errors import MessageRefused
from penstock.lifecycle import JSON, storable_texts
from penstock_apps.recipes.limits import MAX_LINES

AnyMessage = TypeVar("AnyMessage", bound=BaseModel)
_HASH = "^[0-9a-f]{64}$"
LONGEST_ERROR = 10_000
LONGEST_TITLE = 500
LONGEST_RESULT = 900_000
"""Bytes: brokers take messages of a megabyte."""


class ParseRequest(BaseModel):
    """One message of ``parse-requests``."""

    requestId: UUID  # noqa: N815 - the names are the message's
    url: str = Field(min_length=1, max_length=10_000)
    urlHash: str = Field(pattern=_HASH)  # noqa: N815
    useLlmFallback: bool = True  # noqa: N815
    share: str | None = Field(default=None, max_length=100)
    """Whose share of the places the page counts to; nobody's where it is not said."""


class ParseStart(BaseModel):
    """One message of ``parse-results``: a parser has begun with a request."""

    requestId: UUID  # noqa: N815
    urlHash: str = Field(pattern=_HASH)  # noqa: N815
    status: Literal["PROCESSING"]


class ParseResult(BaseModel):
    """One message of ``parse-results``: what came of a request."""

    requestId: UUID  # noqa: N815
    urlHash: str = Field(pattern=_HASH)  # noqa: N815
    success: bool
    errorMessage: str | None = Field(default=None, max_length=LONGEST_ERROR)  # noqa: N815
    usedLlm: bool = False  # noqa: N815
    title: str | None = Field(default=None, max_length=LONGEST_TITLE)
    ingredients: list[dict[str, JSON]] = Field(default_factory=list, max_length=MAX_LINES)


def read_answer(payload: JSON) -> ParseStart | ParseResult:
    """What a parser says; a message with ``success`` is a result, whatever its status."""
    says_how_it_ended = isinstance(payload, dict) and "success" in payload
    if isinstance(payload, dict) and "status" in payload and not says_how_it_ended:
        return read(ParseStart, payload)
    return read(ParseResult, payload)


def read(message: type[AnyMessage], payload: JSON) -> AnyMessage:
    """A message of this form; another one is refused, with the field that is wrong."""
    try:
        return message.model_validate(storable_texts(payload))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the whole"
        raise MessageRefused(f"it cannot be read: {place}: {first['msg']}") from None
