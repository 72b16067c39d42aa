"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock.errors import InvalidInput


def read_moment(text: str | None, field: str) -> datetime | None:
    """The time a text names; UTC unless it names a zone."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a time like 2026-11-16T08:00:00Z", field=field) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
