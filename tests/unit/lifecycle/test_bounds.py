"""Names and policies that no kind can have are refused when it is registered."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import ItemContext, Penstock
from penstock.errors import ConfigurationError


def nothing(item: ItemContext) -> None:
    """A handler."""


NAMES = ["k\n", "k\r", "K", "", " k", "k!", "-k", ".k", "k" * 65, "é", "k\x00", "k k", 7]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_name_that_no_kind_can_have(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="not a kind's name") as refused:
        Penstock("sqlite://").kind(name)(nothing)
    assert refused.value.code == "OUT_OF_BOUNDS"


POLICIES: list[dict[str, Any]] = [
    {"priority": 32768},
    {"priority": 1.5},
    {"retries": -1},
    {"retries": 2**31 - 1},
    {"not_found_retries": 2**31 - 1},
    {"queue_limit": 0},
    {"queue_limit": 2**31 - 1},
    {"concurrency": 0},
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_policy_out_of_bounds_is_refused_when_the_kind_is_registered(policy: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(policy))) as refused:
        Penstock("sqlite://").kind("k", **policy)(nothing)
    assert refused.value.code == "OUT_OF_BOUNDS"
