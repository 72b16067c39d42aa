"""Where a page ended, as an opaque text. It comes back from outside, so it is read defensively."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from uuid import UUID

from starlette.requests import Request

from penstock.errors import InvalidInput
from penstock.operations.read_items import ItemCursor
from penstock.operations.read_jobs import JobCursor

_LARGEST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BYTES = 24
_DOWN, _BACK = "down", "back"


def link_to_next(request: Request, **place: object) -> dict[str, str]:
    """The header that leads to the next page of a list: the same question, from another place on."""
    return {"Link": f'<{request.url.include_query_params(**place)}>; rel="next"'}


def written_cursor(moment: datetime, job_id: UUID) -> str:
    """The place behind a job."""
    microseconds = (moment - _EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(microseconds.to_bytes(8) + job_id.bytes).decode()


def read_cursor(text: str) -> JobCursor:
    """The place a cursor names."""
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
        if len(raw) != _BYTES:
            raise ValueError(f"{len(raw)} bytes")
        moment = _EPOCH + timedelta(microseconds=int.from_bytes(raw[:8]))
    except (ValueError, binascii.Error, OverflowError) as error:
        raise InvalidInput("the cursor is not valid; start again without it", field="cursor") from error
    return JobCursor(moment, UUID(bytes=raw[8:]))


def written_place(place: ItemCursor, *, in_order: bool) -> str:
    """The place behind an item: of its position, or of when it last changed; backwards, with when the walk began."""
    parts: list[object] = [_write_moment(place.moment), place.item_id]
    if in_order:
        parts = ["position", place.position]
    elif place.began is not None:
        parts += [_write_moment(place.began), _BACK if place.is_returning else _DOWN]
    return base64.urlsafe_b64encode("|".join(map(str, parts)).encode()).decode()


def read_place(text: str, *, in_order: bool, descending: bool = False) -> ItemCursor:
    """The place such a cursor names; one of another order is refused, too."""
    try:
        first, number, *walk = base64.b64decode(text, altchars=b"-_", validate=True).decode("ascii").split("|")
        if not (number.isdigit() and int(number) <= _LARGEST):
            raise ValueError(number)
        if in_order != (first == "position"):
            raise ValueError(first)
        if in_order and not walk:
            return ItemCursor(position=min(int(number), 2**31 - 1))
        if descending and not in_order:
            began, way = walk
            if way not in (_BACK, _DOWN):
                raise ValueError(way)
            return ItemCursor(_moment(first), int(number), began=_moment(began), is_returning=way == _BACK)
        if walk:
            raise ValueError(walk)
        return ItemCursor(_moment(first), int(number))
    except (ValueError, OverflowError, binascii.Error) as error:
        raise InvalidInput(
            "the cursor belongs to another list or order; start again without it", field="after"
        ) from error


def _write_moment(moment: datetime | None) -> str:
    assert moment is not None
    return moment.astimezone(UTC).isoformat()


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or not 1970 <= moment.year < 9999:
        raise ValueError(text)
    return moment.astimezone(UTC)
