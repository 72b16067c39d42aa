"""How long a lease should last: twice what a slice may take, within bounds."""

from __future__ import annotations


def lease_seconds(
    average_item_ms: float | None, claim_size: int, *, timeout: float | None, floor_ms: int, cap_ms: int
) -> float:
    """``max(2 × expected, floor)`` capped, in seconds; heartbeats extend it while the work goes on.

    >>> lease_seconds(None, 16, timeout=None, floor_ms=30_000, cap_ms=600_000)
    30.0
    >>> lease_seconds(20_000, 4, timeout=None, floor_ms=30_000, cap_ms=600_000)
    160.0
    """
    expected_ms = (average_item_ms or 0.0) * max(claim_size, 1)
    if timeout is not None:
        expected_ms = min(expected_ms, timeout * 1000.0 * max(claim_size, 1))
    return max(floor_ms, min(2.0 * expected_ms, cap_ms)) / 1000.0
