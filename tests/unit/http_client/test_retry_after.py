"""Retry-After as strangers write it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.http_client import read_retry_after

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("86400", 3600.0),
        ("9" * 12, 3600.0),
        ("9" * 5_000, None),
        ("-1", None),
        ("1.5", None),
        ("\u0667", None),
        ("soon", None),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("Thu, 01 Jan 2026 12:00:30", 30.0),
        ("Thu, 01 Jan 99999 12:00:30 GMT", None),
        ("(" * 100_000, None),
    ],
)
def test_seconds_or_nothing(text: str | None, expected: float | None) -> None:
    assert read_retry_after(text, NOW) == expected
