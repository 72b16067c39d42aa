"""The bodies of the recipes API, in the names its clients know."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from penstock.lifecycle import JSON

Address = Annotated[str, Field(max_length=4096, examples=["https://example.com/soup"])]
_URL: dict[str, JSON] = {"examples": [{"url": "https://example.com/soup"}]}
_SENT_PAGE: dict[str, JSON] = {
    "examples": [
        {
            "input": {
                "source_type": "client_webview",
                "source_url": "https://example.com/soup",
                "jsonld_blocks": ['{"@type": "Recipe", "name": "Tomato soup"}'],
            }
        }
    ]
}
Status = Literal["PENDING", "RUNNING", "COMPLETE", "ERROR", "CANCELED", "COMMITTED", "ABANDONED"]


class ParseUrl(BaseModel):
    """A page to parse."""

    model_config = ConfigDict(json_schema_extra=_URL)
    url: Address
    use_llm_fallback: bool = Field(
        default=True, strict=True, description="May a language model be asked where nothing else helps?"
    )


class SentPage(BaseModel):
    """What a client saw of a page that it opened itself."""

    source_type: Literal["client_webview"]
    source_url: Address
    jsonld_blocks: list[Annotated[str, Field(max_length=2_000_000)]] | None = Field(
        default=None, max_length=100, description="The page's JSON-LD, each script as it stands there."
    )
    html_snippet: str | None = Field(default=None, max_length=10_000_000, description="Part of the page's HTML.")
    extracted_at: str | None = Field(default=None, max_length=100, description="Taken, and not kept.")
    client: str | None = Field(default=None, max_length=200, description="Taken, and not kept.")


class ParsePayload(BaseModel):
    """A page to parse that needs no fetching."""

    model_config = ConfigDict(json_schema_extra=_SENT_PAGE)
    input: SentPage
    use_llm_fallback: bool = Field(default=True, strict=True)


class Advice(BaseModel):
    """What the client can do where the server cannot go on; null where nothing is left to do."""

    next_action: Literal["webview_extract"] | None = Field(
        description="Open the page in a browser of your own, and send what it shows to `/recipes/parse-payload/async`."
    )
    next_action_reason: Literal["blocked_by_site"] | None


class ParseStarted(Advice):
    """The job that does it."""

    id: UUID
    status: Status


class PhotosStarted(BaseModel):
    """The job that reads them."""

    job_id: UUID
    status: Status


class ParseStatus(Advice):
    """How a job stands."""

    id: UUID
    status: Status
    result: dict[str, JSON] | None = Field(
        description="What was parsed, once there is something; where a site refuses servers, why, with the advice."
    )
    error_code: str | None = Field(
        description="`fetch_failed` where a site refuses servers: the queue's client looks for that word."
    )
    error_message: str | None


class Preview(BaseModel):
    """What a card in the mailbox shows."""

    title: str | None
    source_host: str | None


class MailboxJob(BaseModel):
    """A job that waits for its owner."""

    id: UUID
    job_type: str = Field(description="`url`, or `ocr` of photos; an imported job may be `social`.", examples=["url"])
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


class Abandoned(BaseModel):
    """A job that was dismissed."""

    id: UUID
    status: Literal["ABANDONED"]


class RequestedUrl(BaseModel):
    """A page to parse."""

    model_config = ConfigDict(json_schema_extra=_URL)
    url: Address


class ParsedShown(BaseModel):
    """A recipe, in the fields of the parse requests."""

    urlHash: str | None = Field(description="Null of a recipe that was read from photos.")  # noqa: N815
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
