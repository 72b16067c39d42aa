"""Items in the words of grids and of what waits. Pure: no database, no request."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.http.items.schemas import ErrorGroupShown, GridItem, InputSummary, PendingItem
from penstock.operations import export
from penstock.operations.read_items import ErrorGroup, ItemRow, Summary


def grid_item(item: ItemRow, columns: Sequence[str]) -> GridItem:
    """An item with its cells."""
    values = export.cells(columns, item.result, item.normalized)
    return GridItem(
        id=str(item.id),
        jobId=item.job_id,
        jobType=item.kind,
        position=item.position,
        status=item.status,
        attempts=item.attempts,
        deaths=item.deaths,
        lockedBy=item.locked_by,
        lockedAt=item.locked_at,
        readyAt=item.ready_at,
        updatedAt=item.updated_at,
        lastError=item.last_error,
        errorCode=item.error_code,
        inputSummary=_input_summary(item.summary),
        cells=dict(zip(columns or export.WHOLE, values, strict=True)),
    )


def pending_item(item: ItemRow) -> PendingItem:
    """An item that waits or runs."""
    return PendingItem(
        id=str(item.id),
        jobId=item.job_id,
        jobType=item.kind,
        position=item.position,
        status=item.status,
        attempts=item.attempts,
        deaths=item.deaths,
        lockedBy=item.locked_by,
        lockedAt=item.locked_at,
        readyAt=item.ready_at,
        updatedAt=item.updated_at,
        lastError=item.last_error,
        errorCode=item.error_code,
        inputSummary=_input_summary(item.summary),
        userId=item.user_id,
    )


def error_group(group: ErrorGroup) -> ErrorGroupShown:
    """Items that ended alike."""
    return ErrorGroupShown(status=group.status, errorCode=group.error_code, count=group.count, example=group.example)


def _input_summary(summary: Summary) -> InputSummary:
    return {"title": summary.title, **summary.more}
