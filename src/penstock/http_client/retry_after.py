"""The header Retry-After: how long somebody wants to be left alone."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_SECONDS = 3600.0
_MOST_DIGITS = 12
_LONGEST_TEXT = 100


def read_retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait, from a number or a date; an hour at most, and None where it says neither.

    >>> read_retry_after("7"), read_retry_after("soon"), read_retry_after("999999")
    (7.0, None, 3600.0)
    """
    text = "" if text is None else text.strip()
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return min(float(text), LONGEST_SECONDS)
    if not text or len(text) > _LONGEST_TEXT:
        return None
    try:
        until = parsedate_to_datetime(text)
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return min(max((until - (now or datetime.now(UTC))).total_seconds(), 0.0), LONGEST_SECONDS)
    except (ValueError, OverflowError):
        return None
