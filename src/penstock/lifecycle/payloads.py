"""Payloads as JSON text that every database gives back equal: the one place where the rules are.

docs/explanation/payloads.md has the rules. A payload that is JSON already is written by orjson and looked at in one
piece: that costs little, and there are many. Only where something may be wrong is the value walked through, to name the
place. What makes one look closer:

- orjson refuses it: large integers, lone surrogates, keys that are no texts, deep nesting, foreign objects;
- the text has the escape of NUL, which PostgreSQL cannot keep;
- the text has ``null``, which orjson also writes for NaN: then it must read back as what was given;
- the text has ``e+``, as large floats do: jsonb would give ``6.024757169219378e+16`` back as an integer, and not as the
  one that is equal to it; written out with a point (``60247571692193780.0``) it stays a float.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import Any
from uuid import UUID

import orjson

from penstock.errors import InvalidInput, PayloadNotStorable, PayloadTooLarge

JSON = Any
"""Whatever JSON can say: the one place where a type cannot."""

# orjson would round a zone's offset to minutes, and write what an object has beside its fields.
_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")
_LEAST, _LARGEST = -(2**63), 2**64 - 1
"""What orjson reads and writes, and SQLite's text, jsonb and the JSON of other servers give back."""
_DEEPEST = 254
"""orjson's own bound."""
_LARGE_FLOAT = re.compile(rb'"(?:[^"\\]|\\.)*+"|((?<![0-9.])-?[0-9.]++e\+[0-9]++)')
"""A text, which is passed over, or a float with an exponent."""
_PLAIN_KEY = re.compile(r"[^\W\d]\w{0,79}")
_LONGEST_KEY = 40
_MAX_STEPS = 12


def encode(value: JSON, *, max_bytes: int, at: str) -> str:
    """``value`` as JSON text, at most ``max_bytes`` bytes of it; ``at`` is what the caller knows it by.

    >>> encode({"price": Decimal("1.10"), "sizes": (1, 2)}, max_bytes=1000, at="params")
    '{"price":"1.10","sizes":[1,2]}'
    """
    data = _dump_plain(value)
    if data is None:
        data = _dump_checked(value, at)
    if len(data) > max_bytes:
        raise PayloadTooLarge(
            f"{at} takes {len(data):,} bytes as JSON; at most {max_bytes:,} are kept (PENSTOCK_MAX_PAYLOAD_BYTES)",
            field=at,
        )
    return data.decode()


def encode_each(values: list[JSON], *, max_bytes: int) -> list[str] | None:
    """What :func:`encode` gives for each value, in a third of the time; None when one of them needs a closer look."""
    try:
        each = [orjson.dumps(value, _convert, _OPTIONS) for value in values]
        whole = b",".join(each)
        if b"\\u0000" in whole or b"e+" in whole or (len(whole) > max_bytes and max(map(len, each)) > max_bytes):
            return None
        if b"null" in whole and orjson.loads(b"[%b]" % whole) != values:
            return None
    except Exception:  # noqa: BLE001 - whatever a stranger's value raises, the closer look says what it is
        return None
    return [data.decode() for data in each]


def decode(text: str | bytes | None) -> JSON:
    """The value of JSON text; None stays None."""
    return None if text is None else orjson.loads(text)


def storable_text(text: str) -> str:
    """``text`` with U+FFFD in place of NUL and lone surrogates, which not every database can keep."""
    return _UNKEEPABLE.sub("\ufffd", text)


def require_storable(text: str, field: str) -> None:
    """Refuse a name that would not be found again, because not every database can keep it."""
    if _UNKEEPABLE.search(text):
        raise InvalidInput(f"{field} has characters that cannot be kept (NUL or lone surrogates)", field=field)


def storable_texts(value: JSON) -> JSON:
    """``value`` with all its texts and keys made storable: for what came from a page, a file or another program.

    >>> storable_texts({"title": "a" + chr(0), "tags": ["b"]})
    {'title': 'a�', 'tags': ['b']}
    """
    match value:
        case str():
            return storable_text(value)
        case dict():
            return {storable_texts(key): storable_texts(member) for key, member in value.items()}
        case list() | tuple():
            return [storable_texts(member) for member in value]
    return value


def _dump_plain(value: JSON) -> bytes | None:
    """The value as orjson writes it; None when it needs a closer look."""
    try:
        data = orjson.dumps(value, _convert, _OPTIONS)
        doubtful = b"\\u0000" in data or b"e+" in data or (b"null" in data and orjson.loads(data) != value)
    except Exception:  # noqa: BLE001 - as above
        return None
    return None if doubtful else data


def _dump_checked(value: JSON, at: str) -> bytes:
    try:
        data = orjson.dumps(_plain(value, 0))
        return _LARGE_FLOAT.sub(_expand_float, data) if b"e+" in data else data
    except _Unkeepable as refusal:
        path = refusal.path(at)
        raise PayloadNotStorable(f"{path} cannot be kept: it {refusal.why}", field=path) from refusal.__cause__
    except Exception as error:
        raise PayloadNotStorable(
            f"{at} cannot be kept: {type(error).__name__}: {error}; build it of dicts, lists, texts and numbers",
            field=at,
        ) from error


def _expand_float(match: re.Match[bytes]) -> bytes:
    return b"%b.0" % format(Decimal(match[1].decode()), "f").encode() if match[1] else match[0]


class _Unkeepable(Exception):
    """What is wrong with a value; on its way up it learns where the value is."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self._steps: list[object] = []

    def under(self, step: object) -> None:
        """It is under this key or at this index."""
        self._steps.append(step)

    def path(self, at: str) -> str:
        """Where it is, as one would write it in Python."""
        steps = self._steps[::-1]
        steps_text = "".join(_step(step) for step in steps[:_MAX_STEPS])
        return f"{at}{steps_text}…" if len(steps) > _MAX_STEPS else f"{at}{steps_text}"


def _step(step: object) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    text = str(step)
    if _PLAIN_KEY.fullmatch(text):
        return f".{text}"
    return f"[{text if len(text) <= _LONGEST_KEY else text[:_LONGEST_KEY] + '...'!a}]"


def _convert(value: object) -> object:
    """What orjson does not write by itself, one step nearer to JSON."""
    match value:
        case float():  # a subclass
            return float(value)
        case tuple():
            return list(value)
        case Decimal() if value.is_finite():
            return str(value)
        case datetime() | time() | date() if value == value:  # pandas has a moment that is none
            text = value.isoformat()
            return f"{text[:-6]}Z" if text.endswith("+00:00") else text
        case PurePath():
            return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {member.name: getattr(value, member.name) for member in fields(value)}
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json")
    raise _Unkeepable(_what_to_do(value))


def _plain(value: object, depth: int) -> JSON:
    """The value in JSON's own types; :class:`_Unkeepable` for what has no place there."""
    names: list[str] | None = None
    values: Iterable[object]
    match value:
        case None | bool():
            return value
        case Enum():
            return _plain(value.value, depth)
        case str():
            return _text(value)
        case int() | float():
            return _number(value)
        case UUID():
            return str(value)
        case dict():
            names, values = [_key(key) for key in value], dict.values(value)
        case list():
            values = value
        case _:
            return _plain(_convert(value), depth)
    if depth == _DEEPEST:
        raise _Unkeepable(f"is nested more than {_DEEPEST} levels deep, or contains itself")
    # One frame a level: the caller's own stack may be deep already.
    plain_values = []
    for index, element in enumerate(values):
        try:
            plain_values.append(_plain(element, depth + 1))
        except _Unkeepable as refusal:
            refusal.under(index if names is None else names[index])
            raise
    return plain_values if names is None else dict(zip(names, plain_values, strict=True))


def _number(value: float) -> float:
    if isinstance(value, int):
        if not _LEAST <= value <= _LARGEST:
            raise _Unkeepable("is an integer beyond 64 bits; write it as a text")
        return int(value)
    if not isfinite(value):
        name = "NaN" if value != value else "infinite"
        raise _Unkeepable(f"is {name}, which JSON has no word for; use None or a text")
    return float(value)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _Unkeepable(f"has the key {ascii(key)[:_LONGEST_KEY]} ({type(key).__name__}); keys are texts")
    try:
        return _text(key)
    except _Unkeepable as refusal:
        raise _Unkeepable(f"has the key {ascii(key)[:_LONGEST_KEY]}, which {refusal.why}") from None


def _text(text: str) -> str:
    match = _UNKEEPABLE.search(text)
    if match is None:
        return str.__str__(text)
    what = "the character NUL (U+0000)" if match[0] == "\x00" else f"a lone surrogate (U+{ord(match[0]):04X})"
    raise _Unkeepable(f"has {what}, which not every database keeps; penstock.storable_text() replaces it")


def _what_to_do(value: object) -> str:
    name = f"is of type {type(value).__qualname__}"
    match value:
        case bytes() | bytearray() | memoryview():
            return f"{name}; decode it to text, or keep it as a file with app.files.keep()"
        case set() | frozenset():
            return f"{name}, which has no order; make it a sorted list"
        case Decimal():
            return f"is {value}, which is no number; use None or a text"
    return f"{name}, which is not JSON; build it of dicts, lists, texts and numbers"
