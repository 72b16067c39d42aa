"""Whatever JSON can say comes back equal from every database; what cannot is refused, and the place is named."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from penstock import ItemContext, JobContext, JobState, Penstock, Planned
from penstock.app import PastJob
from penstock.clock import ManualClock
from penstock.errors import InvalidInput, PayloadNotStorable, PayloadTooLarge
from penstock.lifecycle import outcomes, storable_text, storable_texts
from penstock.lifecycle.payloads import encode
from penstock.lifecycle.states import ItemStatus
from penstock.operations import outbox
from penstock.operations.items import item_texts
from penstock.operations.read_jobs import items as items_of
from penstock.store.engine import Store
from penstock.testing.drive import MAX_BYTES, Workbench
from tests.on_store import OnStore
from tests.properties.engine_kinds import engine_kinds

PATIENCE = 60.0


def nested(levels: int, innermost: Any) -> Any:
    """A value inside of so many lists and dicts."""
    for level in range(levels):
        innermost = [innermost] if level % 2 else {"a": innermost}
    return innermost


KEPT: list[Any] = [
    None,
    True,
    0,
    -(2**63),
    2**63 - 1,
    2**64 - 1,
    2**53 + 1,
    0.1,
    1.0,
    -0.0,
    1e16,
    1e22,
    -6.024757169219378e16,
    1.2345678901234567e22,
    1e300,
    5e-324,
    -1.7976931348623157e308,
    "",
    "é 漢字 🥘 \u2028 \\u0000 null ' \" \\ \n\t\x1f\x7f\uffff",
    [],
    {},
    {"": {"nested": [1, [2, [3, None]]]}},
    {"10": "a", "9": "b", "__proto__": {"constructor": None}, "k" * 5_000: None, "null": [None, "null"]},
    nested(252, 1),
    nested(252, None),
    "x" * 100_000,
]


class Color(enum.Enum):
    RED = "red"
    PAIR = (1, None)


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    KEY = "key"


@dataclass
class Row:
    name: str
    price: Decimal | float | None = None
    _private: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Slotted:
    row: Row


class Model(BaseModel):
    at: datetime
    price: Decimal
    inner: dict[str, float | None]


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Number(float):
    pass


Point = namedtuple("Point", "x y")
BERLIN = timezone(timedelta(hours=1))
ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")

row_with_more = Row("a", 1.5)
row_with_more.cached = "not a field"  # type: ignore[attr-defined]

CONVERTED: list[tuple[Any, Any]] = [
    ((1, None), [1, None]),
    (Point(1, (2, None)), [1, [2, None]]),
    (Decimal("1.10"), "1.10"),
    ({"price": Decimal("1E+2"), "none": None}, {"price": "1E+2", "none": None}),
    (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
    (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=BERLIN), "2026-01-02T03:04:05.000006+01:00"),
    (datetime(1890, 1, 1, tzinfo=timezone(timedelta(seconds=3208))), "1890-01-01T00:00:00+00:53:28"),
    ([datetime(2026, 1, 2), None], ["2026-01-02T00:00:00", None]),  # noqa: DTZ001 - a naive one has no zone
    (date(2026, 1, 2), "2026-01-02"),
    (time(3, 4, tzinfo=UTC), "03:04:00Z"),
    (ID, str(ID)),
    (PurePosixPath("/a/b"), "/a/b"),
    (Color.RED, "red"),
    ([Color.PAIR, Level.HIGH], [[1, None], 3]),
    ({Word.KEY: Word.KEY, "none": None}, {"key": "key", "none": None}),
    (Row("a", 1.5), {"name": "a", "price": 1.5, "_private": []}),
    (Row("a", None), {"name": "a", "price": None, "_private": []}),
    (row_with_more, {"name": "a", "price": 1.5, "_private": []}),
    (Slotted(Row("b", Decimal(1))), {"row": {"name": "b", "price": "1", "_private": []}}),
    (
        Model(at=datetime(2026, 1, 2, tzinfo=UTC), price=Decimal("0.10"), inner={"a": None}),
        {"at": "2026-01-02T00:00:00Z", "price": "0.10", "inner": {"a": None}},
    ),
    ([Text("real"), None], ["real", None]),
    ([Number(2.5), None], [2.5, None]),
    (OrderedDict(a=None), {"a": None}),
]


class Strange:
    """An object of somebody's own."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare me")

    __hash__ = None  # type: ignore[assignment]


def circle() -> Any:
    made: list[Any] = []
    made.append({"again": made})
    return made


REFUSED: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: b"x\xff", "", "of type bytes; decode it to text"),
    (lambda: {"a": [1, bytearray(b"x")]}, ".a[1]", "of type bytearray"),
    (lambda: {"price": math.nan}, ".price", "is NaN"),
    (lambda: {"price": None, "rows": [None, {"unit price": -math.inf}]}, ".rows[1]['unit price']", "is infinite"),
    (lambda: Row("a", math.nan), ".price", "is NaN"),
    (lambda: [Number(math.nan)], "[0]", "is NaN"),
    (lambda: Model(at=datetime.now(UTC), price=Decimal(1), inner={"a": math.nan}), ".inner.a", "is NaN"),
    (lambda: [Decimal("NaN")], "[0]", "is NaN"),
    (lambda: [Decimal("-Infinity")], "[0]", "is -Infinity"),
    (lambda: 2**64, "", "beyond 64 bits"),
    (lambda: {"a": -(2**63) - 1}, ".a", "beyond 64 bits"),
    (lambda: "a\0b", "", r"NUL \(U\+0000\)"),
    (lambda: [{"t": "a\ud800b"}], "[0].t", r"lone surrogate \(U\+D800\)"),
    (lambda: {"a": {"k\0": 1}}, ".a", r"key 'k\\x00', which has the character NUL"),
    (lambda: {"\udfff": 1}, "", "lone surrogate"),
    (lambda: PurePosixPath("caf\udce9"), "", "lone surrogate"),
    (lambda: {"s": {"b", "a"}}, ".s", "of type set, which has no order"),
    (lambda: [frozenset()], "[0]", "of type frozenset"),
    (lambda: {"a": {1: "x"}}, ".a", r"has the key 1 \(int\); keys are texts"),
    (lambda: {None: 1}, "", r"key None \(NoneType\)"),
    (lambda: {(1, 2): 3}, "", "keys are texts"),
    (lambda: {"10 €\n": [object()]}, r"['10 \u20ac\n'][0]", "of type object, which is not JSON"),
    (lambda: {"f": open}, ".f", "is not JSON"),
    (lambda: [1j], "[0]", "of type complex"),
    (lambda: {"g": (n for n in range(3))}, ".g", "of type generator"),
    (lambda: {"s": Strange(), "n": None}, ".s", "of type Strange"),
    (circle, "[0].again[0].again[0].again[0].again[0].again[0].again…", "contains itself"),
    (lambda: nested(255, 1), "[0].a[0].a[0].a[0].a[0].a[0].a…".replace("[0].a", ".a[0]"), "more than 254 levels"),
    (lambda: nested(254, {}), "", "more than 254 levels"),
    (lambda: nested(255, None), "", "more than 254 levels"),
]


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
def test_what_would_not_come_back_equal_is_refused_and_leaves_nothing(memory_bench: Workbench, number: int) -> None:
    make, path, why = REFUSED[number]
    bench = memory_bench
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


@pytest.fixture
def memory_bench(memory_store: Store) -> Workbench:
    return workbench(memory_store)


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


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])  # one database for all of them
@given(st.lists(values, min_size=1, max_size=6))
@example([{"a": math.nan, "b": None}, 1])
@example([[None, 2**64 - 1], {"": "\\u0000"}])
def test_any_value_is_refused_or_comes_back_as_the_page_says(anyones_bench: Workbench, several: list[Any]) -> None:
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
        assert_kept(anyones_bench, kept, expected)


@pytest.fixture(params=["file", "postgres"])
def anyones_bench(request: pytest.FixtureRequest) -> Workbench:
    return workbench(request.getfixturevalue(f"{request.param}_store"))


# Where it is said -----------------------------------------------------------------------------------------------------


class Odd:
    """A kind whose results, plan and finalize are what its params say."""

    def plan(self, job: JobContext) -> Any:
        yield from range(4)
        if job.params == "plan":
            yield {"price": [math.nan]}
        if job.params == "normalized":
            yield Planned(5, {"text": "\0"})

    def process(self, item: ItemContext) -> Any:
        return {"n": item.input, "bytes": b"\xff"} if item.input == 2 and item.params == "process" else item.input

    def finalize(self, job: JobContext) -> Any:
        return {"of": {1, 2}} if job.params == "finalize" else "well"


def odd_job(store: Store, folder: Path, params: str) -> tuple[Penstock, Any]:
    """A job of that kind that has run."""
    app = OnStore(store, folder)
    app.kind("odd", retries=3)(Odd)
    job = app.submit("odd", params).job
    assert app.drain(timeout=PATIENCE)
    return app, app.jobs.get(job.id)


def test_a_refused_result_is_the_end_of_that_item_alone(store: Store, tmp_path: Path) -> None:
    app, job = odd_job(store, tmp_path, "process")
    assert (job.state, job.result, job.progress.failed, job.progress.done) == (JobState.SUCCEEDED, "well", 1, 3)
    [bad] = app.items.list(job.id, statuses=[ItemStatus.ERROR])
    assert (bad.position, bad.attempts, bad.error_code) == (3, 1, "PAYLOAD_NOT_STORABLE")
    assert bad.last_error is not None
    assert bad.last_error.startswith("result.bytes cannot be kept: it is of type bytes")


@pytest.mark.parametrize(
    ("params", "path"), [("plan", "item 5: items[4].price[0] cannot"), ("normalized", "item 5: items[4].normalized.te")]
)
def test_a_refused_value_ends_a_plan_and_names_the_position(
    store: Store, tmp_path: Path, params: str, path: str
) -> None:
    _, job = odd_job(store, tmp_path, params)
    assert (job.state, job.error_code) == (JobState.FAILED, "PAYLOAD_NOT_STORABLE")
    assert job.last_error.startswith(path)


def test_a_refused_result_of_finalize_fails_the_job_at_once(store: Store, tmp_path: Path) -> None:
    _, job = odd_job(store, tmp_path, "finalize")
    assert (job.state, job.error_code, job.progress.done) == (JobState.FAILED, "PAYLOAD_NOT_STORABLE", 4)
    assert job.last_error.startswith("result.of cannot be kept: it is of type set")


def test_of_many_jobs_the_one_at_fault_is_named_and_none_is_recorded(store: Store, tmp_path: Path) -> None:
    app = OnStore(store, tmp_path)
    app.kind("odd")(Odd)
    with pytest.raises(PayloadNotStorable) as raised:
        app.submit_many("odd", [{"when": None}, {"when": math.nan}])
    assert raised.value.field == "params[1].when"
    assert app.jobs.list() == []


def test_names_that_are_looked_up_again_are_refused_and_not_changed(store: Store, tmp_path: Path) -> None:
    app = OnStore(store, tmp_path)
    app.kind("odd")(Odd)
    for bad in ("a\0b", "a\ud800b"):
        for name in ("owner", "unique_key", "idempotency_key", "ip_address"):
            with pytest.raises(InvalidInput) as raised:
                app.submit("odd", **{name: bad})  # type: ignore[arg-type]  # of four names, all texts
            assert raised.value.field == name
        with pytest.raises(InvalidInput, match="topic has"):
            app.messages.publish(bad, 1)
        with pytest.raises(InvalidInput, match="key has"):
            app.messages.publish("topic", 1, key=bad)
        with pytest.raises(InvalidInput, match="owner has"):
            PastJob(ID, JobState.SUCCEEDED, bad, None, datetime.now(UTC))
        past = PastJob(ID, JobState.FAILED, None, None, datetime.now(UTC), error=bad, error_code=bad)
        app.system.import_jobs("odd", [past])
        assert app.jobs.get(ID).error_code == "a\ufffdb"
        job = app.submit("odd", title=bad, hold=True).job
        assert app.jobs.get(job.id).title in ("a b", "a\ufffdb")


def test_what_is_too_large_is_refused_with_both_sizes(bench: Workbench) -> None:
    with pytest.raises(PayloadTooLarge, match=r"params takes 1,000,002 bytes as JSON; at most 1,000,000 are kept"):
        bench.submit("single", "x" * MAX_BYTES)
    assert bench.submit("single", "x" * (MAX_BYTES - 2)).job.params == "x" * (MAX_BYTES - 2)


def test_foreign_text_can_be_cleaned_before() -> None:
    foreign = {"a\0": ["b\ud800", ("c", 1, None)]}
    assert storable_texts(foreign) == {"a\ufffd": ["b\ufffd", ["c", 1, None]]}
    assert storable_text("\0a\udfff") == "\ufffda\ufffd"
