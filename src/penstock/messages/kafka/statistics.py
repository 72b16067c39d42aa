"""What the client says of itself every few seconds: which brokers it reaches, and what is not handled yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from penstock.lifecycle.payloads import decode
from penstock.lifecycle.transport import TransportHealth

STATISTICS_MS = 5_000


def read_health(text: str, places: Collection[tuple[str, int]], *, trouble: str | None) -> TransportHealth:
    """How a consumer of these partitions fares; ``trouble`` is what the client complained of last."""
    statistics: Any = decode(text)
    is_reachable = any(broker.get("state") == "UP" for broker in statistics.get("brokers", {}).values())
    lag: Counter[str] = Counter()
    for topic, number in places:
        partitions = statistics.get("topics", {}).get(topic, {}).get("partitions", {})
        lag[topic] += _lag_of(partitions.get(str(number), {}))
    return TransportHealth(is_reachable, dict(lag), None if is_reachable else trouble)


def _lag_of(partition: Mapping[str, int]) -> int:
    """What is behind the offset that is committed; all of it where the group has committed none.

    Offsets that the client does not know are negative.
    """
    end, committed = partition.get("hi_offset", -1), partition.get("committed_offset", -1)
    begin = committed if committed >= 0 else max(0, partition.get("lo_offset", 0))
    return max(0, end - begin)
