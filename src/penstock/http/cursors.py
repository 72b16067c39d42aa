"""Where a page ended, as an opaque text. It comes back from outside, so it is read defensively."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.operations.inspect import After
from penstock.operations.item_pages import ItemRow, Place

_LARGEST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BYTES = 24


def written_cursor(moment: datetime, job_id: UUID) -> str:
    """The place behind a job."""
    microseconds = (moment - _EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(microseconds.to_bytes(8) + job_id.bytes).decode()


def read_cursor(text: str) -> After:
    """The place a cursor names."""
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
        if len(raw) != _BYTES:
            raise ValueError(f"{len(raw)} bytes")
        moment = _EPOCH + timedelta(microseconds=int.from_bytes(raw[:8]))
    except (ValueError, binascii.Error, OverflowError) as error:
        raise InvalidInput("the cursor is not one of ours; begin again without it", field="cursor") from error
    return After(moment, UUID(bytes=raw[8:]))


def written_place(item: ItemRow, *, in_order: bool) -> str:
    """The place behind an item: of its position, or of when it last changed."""
    text = f"position|{item.position}" if in_order else f"{item.updated_at.astimezone(UTC).isoformat()}|{item.id}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def read_place(text: str, *, in_order: bool) -> Place:
    """The place such a cursor names; one of another order is refused, too."""
    try:
        first, _, number = base64.b64decode(text, altchars=b"-_", validate=True).decode("ascii").partition("|")
        if not (number.isdigit() and int(number) <= _LARGEST):
            raise ValueError(number)
        if in_order != (first == "position"):
            raise ValueError(first)
        if in_order:
            return Place(position=min(int(number), 2**31 - 1))
        moment = datetime.fromisoformat(first)
        if moment.tzinfo is None or not 1970 <= moment.year < 9999:
            raise ValueError(first)
        return Place(moment.astimezone(UTC), int(number))
    except (ValueError, OverflowError, binascii.Error) as error:
        raise InvalidInput(
            "the cursor is not one of this list in this order; begin again without it", field="after"
        ) from error
