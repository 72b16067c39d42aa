"""Whatever JSON can say comes back from every database as it went in, and what cannot be kept is mended in one way."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest

from penstock.errors import PayloadNotStorable, PayloadTooLarge
from penstock.lifecycle import outcomes
from penstock.lifecycle.payloads import encode
from penstock.testing.drive import MOST, Workbench

KEPT: list[Any] = [
    None,
    True,
    0,
    -(2**63),
    2**63 - 1,
    0.1,
    1e300,
    "",
    "é 漢字 🥘 \u2028 \\u0000 ' \" \\ \n\t\x1f",
    [],
    {},
    {"": {"nested": [1, [2, [3, None]]]}},
    {"10": "a", "9": "b"},
    "x" * 100_000,
]

MENDED: list[tuple[Any, Any]] = [
    (Decimal("1.10"), "1.10"),
    (2**70, str(2**70)),
    (-(2**70), str(-(2**70))),
    ("a\0b", "a\ufffdb"),
    ("a\ud800b", "a\ufffdb"),
    ({"k\0": ["\udfff"]}, {"k\ufffd": ["\ufffd"]}),
    ({"s": {"a\0"}}, {"s": ["a\ufffd"]}),
    (math.nan, None),
    ([math.inf, -math.inf], [None, None]),
    ({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}),
    ((1, 2), [1, 2]),
    ({"b", "a"}, ["a", "b"]),
    (b"\xff\x00a", "\ufffd\ufffda"),
    (PurePosixPath("/a/b"), "/a/b"),
]


def test_params_inputs_and_results_come_back(bench: Workbench) -> None:
    for value, expected in [*((one, one) for one in KEPT), *MENDED]:
        single = bench.submit("single", value).job
        bulk = bench.submit("bulk", items=[value]).job
        held = bench.claim("single") + bench.claim("bulk", size=1)
        assert [one.input for one in held] == [expected, expected], value
        bench.record(held, outcomes.done(encode(value, most=MOST)))
        assert (bench.job(single.id).params, bench.job(single.id).result) == (expected, expected), value
        assert bench.job(bulk.id).progress.done == 1
        bench.work_off("bulk")


def test_what_is_not_json_is_refused_by_name_and_leaves_nothing(bench: Workbench) -> None:
    for value in (object(), {"f": open}, {(1, 2): 3}, 1j):
        with pytest.raises(PayloadNotStorable, match="cannot be kept as JSON"):
            bench.submit("single", value)
        with pytest.raises(PayloadNotStorable, match="the input cannot be kept"):
            bench.submit("bulk", items=[1, value])
    assert bench.jobs() == []


def test_a_circle_is_refused(bench: Workbench) -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(PayloadNotStorable):
        bench.submit("single", circle)


def test_what_is_too_large_is_refused_with_both_sizes(bench: Workbench) -> None:
    with pytest.raises(PayloadTooLarge, match=r"takes 1,000,002 bytes as JSON; at most 1,000,000 are kept"):
        bench.submit("single", "x" * MOST)
    assert bench.submit("single", "x" * (MOST - 2)).job.params == "x" * (MOST - 2)
