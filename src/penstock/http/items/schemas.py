"""The shapes of grids and of what waits, in the spelling of their queries (``pageSize``, ``jobType``, ``userId``).

Answers are plain dataclasses without slots: orjson writes those straight from their ``__dict__``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from penstock.lifecycle.states import ItemStatus

InputSummary = Annotated[
    dict[str, str | None],
    Field(
        description="What tells people which item it is: a `title`, and what its kind has beside it.",
        examples=[{"title": "prices.csv"}],
    ),
]


@dataclass(kw_only=True)
class ItemShown:
    """An item of a list."""

    id: str
    jobId: UUID
    jobType: str
    position: Annotated[int, Field(description="Its place in the job, from 1; it never changes.")]
    status: ItemStatus
    attempts: int
    deaths: Annotated[int, Field(description="Workers that died while they held it; these do not count as tries.")]
    lockedBy: str | None
    lockedAt: datetime | None
    readyAt: Annotated[datetime | None, Field(description="Not before then, for one that is tried again.")]
    updatedAt: datetime
    lastError: str | None
    errorCode: str | None
    inputSummary: InputSummary


@dataclass(kw_only=True)
class GridItem(ItemShown):
    """An item with its cells."""

    cells: Annotated[dict[str, Any], Field(description="By column, exactly what an export has.")]


@dataclass(kw_only=True)
class GridPage:
    """A page of a job's items."""

    items: list[GridItem]
    columns: Annotated[list[str], Field(description="The kind's own columns, in order.")]
    page: Annotated[int | None, Field(description="None where the page was asked for by a cursor.")]
    pageSize: int
    total: Annotated[int | None, Field(description="Items there are, where all statuses were asked for.")]
    next: Annotated[str | None, Field(description="For `after`; null on the last page.")]


@dataclass(kw_only=True)
class PendingItem(ItemShown):
    """An item that waits or runs."""

    userId: str | None


@dataclass(kw_only=True)
class PendingPage:
    """A page of what waits."""

    items: list[PendingItem]
    pageSize: int
    next: str | None
    pendingCount: Annotated[
        dict[str, int], Field(description="Open items by job type, counted at most every 45 seconds.")
    ]
    countedAt: datetime


@dataclass(kw_only=True)
class ErrorGroupShown:
    """Items that ended alike."""

    status: ItemStatus
    errorCode: str | None
    count: int
    example: str | None
