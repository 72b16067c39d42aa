"""Values that come back equal, values that are converted, and values that are refused, each with what is said."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from pydantic import BaseModel


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
