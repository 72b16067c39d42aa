"""What is made of the client's statistics: whether a broker is reached, and what is not handled yet."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.lifecycle.transport import TransportHealth
from penstock.messages.kafka.statistics import read_health

UNKNOWN = -1001
"""What the client says of an offset that it does not know."""


def statistics(*states: str, **partitions: dict[str, int]) -> str:
    """As the client writes them, of one topic; partitions are called p0, p1, …"""
    by_number = {name.removeprefix("p"): offsets for name, offsets in partitions.items()}
    brokers: dict[str, Any] = {f"broker-{number}": {"state": state} for number, state in enumerate(states)}
    return json.dumps({"brokers": brokers, "topics": {"orders": {"partitions": by_number}}})


def offsets(low: int, high: int, committed: int) -> dict[str, int]:
    return {"lo_offset": low, "hi_offset": high, "committed_offset": committed}


def test_the_lag_is_what_is_behind_the_committed_offset_of_each_partition() -> None:
    text = statistics("UP", p0=offsets(0, 10, 4), p1=offsets(5, 9, 9), p2=offsets(0, 100, 0))
    places = [("orders", 0), ("orders", 1)]
    assert read_health(text, places, trouble=None) == TransportHealth(is_reachable=True, lag={"orders": 6})


@pytest.mark.parametrize(
    ("partition", "lag"),
    [
        (offsets(3, 10, UNKNOWN), 7),
        (offsets(UNKNOWN, 10, UNKNOWN), 10),
        (offsets(UNKNOWN, UNKNOWN, UNKNOWN), 0),
        (offsets(0, UNKNOWN, 4), 0),
        ({}, 0),
    ],
)
def test_a_group_that_has_committed_nothing_has_all_of_it_before_it(partition: dict[str, int], lag: int) -> None:
    health = read_health(statistics("UP", p0=partition), [("orders", 0)], trouble=None)
    assert health.lag == {"orders": lag}


@pytest.mark.parametrize(
    ("states", "is_reachable"), [(["DOWN", "UP"], True), (["DOWN", "TRY_CONNECT", "INIT"], False), ([], False)]
)
def test_one_connection_that_stands_is_enough(states: list[str], is_reachable: bool) -> None:
    health = read_health(statistics(*states), [], trouble="connection refused")
    assert health == TransportHealth(is_reachable, {}, None if is_reachable else "connection refused")


def test_a_topic_that_the_client_says_nothing_of_has_no_lag_yet() -> None:
    assert read_health("{}", [("bills", 0)], trouble=None) == TransportHealth(is_reachable=False, lag={"bills": 0})
