"""Whatever JSON can say comes back equal from every database."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock import Planned
from penstock.clock import ManualClock
from penstock.errors import PayloadNotStorable
from penstock.lifecycle import outcomes
from penstock.lifecycle.payloads import encode
from penstock.operations import outbox
from penstock.operations.items import item_texts
from penstock.operations.read_jobs import items as items_of
from penstock.store.engine import Store
from penstock.testing.drive import MAX_BYTES, Workbench
from tests.conformance.databases import needs
from tests.conformance.payload_values import BERLIN, CONVERTED, KEPT, REFUSED, Row, nested
from tests.properties.engine_kinds import engine_kinds


def test_params_inputs_normalized_results_and_messages_come_back_equal(bench: Workbench) -> None:
    assert_kept(bench, KEPT, KEPT)
    assert_kept(bench, [value for value, _ in CONVERTED], [expected for _, expected in CONVERTED])


def assert_kept(bench: Workbench, given: list[Any], expected: list[Any]) -> None:
    """The values come back from every place there is for one."""
    single = bench.submit("single", {"all": given}).job
    bulk = bench.submit("bulk", items=[Planned(one, [one]) for one in given]).job
    [alone] = bench.claim("single")
    held = bench.claim("bulk", size=len(given))
    results = [outcomes.done(encode(one, max_bytes=MAX_BYTES, at="result")) for one in given]
    whole = outcomes.done(encode(given, max_bytes=MAX_BYTES, at="result"))
    bench.hand_in([(alone, whole), *zip(held, results, strict=True)])
    bench.store.write(lambda one: outbox.append(one, "topic", given, key=None, max_bytes=MAX_BYTES))
    sent: list[Any] = []
    outbox.relay(bench.store, lambda message: sent.append(message.payload))
    kept = bench.job(single.id)
    items = bench.store.read(lambda link: items_of(link, bulk.id, statuses=None, after=0, limit=1_000))
    bench.drain("bulk")  # its finalize
    assert [one.input for one in held] == expected
    assert [one.input for one in items] == expected
    assert [one.normalized for one in items] == [[one] for one in expected]
    assert [one.result for one in items] == expected
    assert (kept.params, kept.result, sent) == ({"all": expected}, expected, [expected])


def test_a_payload_may_be_as_deep_as_the_bound(bench: Workbench) -> None:
    for value in (nested(254, 1), nested(254, None), nested(253, {})):
        assert bench.job(bench.submit("single", value).job.id).params == value


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_would_not_come_back_equal_is_refused_and_leaves_nothing(
    empty_store: Callable[[], Store], number: int
) -> None:
    make, path, why = REFUSED[number]
    bench = workbench(empty_store())
    hand_ins: dict[str, Callable[[Any], object]] = {
        "params": lambda value: bench.submit("single", value),
        "items[1]": lambda value: bench.submit("bulk", items=[1, value]),
        "items[2].normalized": lambda value: bench.submit("bulk", items=[1, 2, Planned(1, value)]),
        "result": lambda value: encode(value, max_bytes=MAX_BYTES, at="result"),
        "payload": lambda value: bench.store.write(
            lambda one: outbox.append(one, "topic", value, key=None, max_bytes=MAX_BYTES)
        ),
    }
    for at, hand_in in hand_ins.items():
        with pytest.raises(PayloadNotStorable, match=why) as raised:
            hand_in(make())
        assert raised.value.code == "PAYLOAD_NOT_STORABLE"
        assert raised.value.field is not None
        if path:
            assert raised.value.field == at + path
        assert raised.value.field.startswith(at)
        assert raised.value.field in raised.value.message
    assert bench.jobs() == []
    assert outbox.relay(bench.store, lambda message: None) == 0


def workbench(store: Store) -> Workbench:
    assert isinstance(store.clock, ManualClock)
    return Workbench(store, store.clock, engine_kinds())


# Any value ------------------------------------------------------------------------------------------------------------

characters = st.characters() | st.sampled_from("\0\ud800\udfff\u2028\\u🥘")
texts = st.text(characters, max_size=8) | st.sampled_from(["null", "\\u0000", "__proto__", "NaN", ""])
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 1e22, -0.0, 5e-324])
    | st.floats()
    | texts
    | st.binary(max_size=3)
    | st.decimals()
    | st.datetimes(timezones=st.none() | st.just(UTC) | st.just(BERLIN))
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(texts | st.integers() | st.none(), inner, max_size=4)
        | st.dictionaries(texts, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.builds(Row, texts, inner)
        | st.sets(st.integers(), max_size=2)
    ),
    max_leaves=12,
)


def by_the_rules(value: Any) -> Any:
    """What the page about payloads says of a value; ValueError where it says it is refused. Written a second time."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        value.encode()
        if "\0" in value:
            raise ValueError
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError
        return value
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            raise ValueError
        return value
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Row):
        return by_the_rules(vars(value))
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError
        return {by_the_rules(key): by_the_rules(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [by_the_rules(one) for one in value]
    raise ValueError


@needs("is_shared")  # what is in memory is the same SQLite
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])  # one database for all of them
@given(st.lists(values, min_size=1, max_size=6))
@example([{"a": math.nan, "b": None}, 1])
@example([[None, 2**64 - 1], {"": "\\u0000"}])
def test_any_value_is_refused_or_comes_back_as_the_page_says(bench: Workbench, several: list[Any]) -> None:
    kept, expected = [], []
    for value in several:
        try:
            expected.append(by_the_rules(value))
        except ValueError:
            with pytest.raises(PayloadNotStorable):
                encode(value, max_bytes=MAX_BYTES, at="result")
            with pytest.raises(PayloadNotStorable):
                item_texts([None, Planned(1, [value])], MAX_BYTES, 0)
        else:
            kept.append(value)
    if kept:
        assert_kept(bench, kept, expected)
