"""The shapes of the pipeline's addresses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.lifecycle.states import ItemStatus

MOST_NAMED = 10_000
MOST_CODES = 100


class _Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class InputSummary(BaseModel):
    """What tells people which item it is; never the whole input. A kind may have more than a title."""

    model_config = ConfigDict(extra="allow")

    title: str | None


class ItemShown(_Camel):
    """An item of a grid."""

    id: str
    job_id: UUID
    job_type: str
    position: int = Field(description="Its place in the job, from 1; it never changes.")
    status: ItemStatus
    attempts: int
    deaths: int = Field(description="Workers that died while they held it; they used up no try.")
    locked_by: str | None
    locked_at: datetime | None
    ready_at: datetime | None = Field(description="Not before then, for one that is tried again.")
    updated_at: datetime
    last_error: str | None
    error_code: str | None
    input_summary: InputSummary


class GridItem(ItemShown):
    """An item with its cells."""

    cells: dict[str, Any] = Field(description="By column, exactly what an export has.")


class GridPage(_Camel):
    """A page of a job's items."""

    items: list[GridItem]
    columns: list[str] = Field(description="The kind's own columns, in order.")
    page: int | None = Field(description="None where the page was asked for by a cursor.")
    page_size: int
    total: int | None = Field(description="Items there are, where all statuses were asked for.")
    next: str | None = Field(description="For `after`; null on the last page.")


class PendingItem(ItemShown):
    """An item that waits or is in hand."""

    user_id: str | None


class PendingPage(_Camel):
    """A page of what waits."""

    items: list[PendingItem]
    page_size: int
    next: str | None
    pending_count: dict[str, int] = Field(description="Open items by job type, counted at most every 45 seconds.")
    counted_at: datetime


class ErrorGroupShown(_Camel):
    """Items that ended alike."""

    status: ItemStatus
    error_code: str | None
    count: int
    example: str | None


class Reason(BaseModel):
    """Why; kept in the history."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the shop is closed today"}]})

    reason: str | None = Field(default=None, max_length=2000, examples=["the shop is closed today"])


class Reprocess(_Camel):
    """Which items run again, and how."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"scope": "job", "statuses": ["ERROR", "NOT_FOUND"]}]})

    scope: Literal["job", "items"] = "job"
    item_ids: list[str] | None = Field(default=None, min_length=1, max_length=MOST_NAMED, examples=[["17", "18"]])
    statuses: list[ItemStatus] = Field(
        default=[ItemStatus.ERROR, ItemStatus.NOT_FOUND], min_length=1, max_length=len(ItemStatus)
    )
    error_codes: list[Annotated[str, Field(max_length=64)] | None] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_CODES,
        description="Only items that ended with one of these codes; null for those without a code.",
        examples=[["UNEXPECTED_ERROR", None]],
    )
    reset_attempts: bool = Field(default=False, description="Give each its full number of tries again.")
    permanent: bool = Field(default=False, description="Also those that failed for good.")
    reason: str | None = Field(default=None, max_length=2000)
