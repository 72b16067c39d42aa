"""Where a page ended, as an opaque text. It comes back from outside, so it is read defensively."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.operations.inspect import After

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
