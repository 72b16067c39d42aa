"""JSON as every database can keep it.

orjson is fast and strict; what it or a database refuses is settled here, once: a Decimal becomes its text, an integer
beyond 64 bits becomes its text (any JSON reader would round it), NUL and lone surrogates become U+FFFD (PostgreSQL
cannot keep either), NaN and infinities become null. Anything else that is not JSON is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import PurePath
from typing import Any

import orjson

from penstock.errors import PayloadNotStorable, PayloadTooLarge

JSON = Any
"""Whatever JSON can say: the one place where a type cannot."""

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")
_LARGEST = 2**63 - 1


def encode(value: JSON, *, most: int, what: str = "value") -> str:
    """``value`` as JSON text, at most ``most`` bytes of it.

    >>> encode({"price": Decimal("1.10"), "big": 2**70, "text": "a" + chr(0) + "b"}, most=1000)
    '{"price":"1.10","big":"1180591620717411303424","text":"a�b"}'
    """
    try:
        data = orjson.dumps(value, _fallback, _OPTIONS)
        if b"\\u0000" in data:
            # Read back first: what was a set or a dataclass is plain by now.
            data = orjson.dumps(_mended(orjson.loads(data)), _fallback, _OPTIONS)
    except (TypeError, ValueError):
        # A big integer, a lone surrogate, or something that is not JSON at all: mend what can be mended.
        try:
            data = orjson.dumps(_mended(value), _fallback, _OPTIONS)
        except (TypeError, ValueError, RecursionError) as error:
            raise PayloadNotStorable(
                f"the {what} cannot be kept as JSON: {error}; return plain dicts, lists, texts and numbers"
            ) from error
    if len(data) > most:
        raise PayloadTooLarge(
            f"the {what} takes {len(data):,} bytes as JSON; at most {most:,} are kept (PENSTOCK_MAX_PAYLOAD_BYTES)"
        )
    return data.decode()


def encode_each(values: Sequence[JSON], *, most: int) -> list[str] | None:
    """What :func:`encode` gives for each value, in a third of the time; None when one of them needs a closer look."""
    try:
        each = [orjson.dumps(one, _fallback, _OPTIONS) for one in values]
    except (TypeError, ValueError):
        return None
    whole = b"".join(each)
    if b"\\u0000" in whole or (len(whole) > most and max(map(len, each)) > most):
        return None
    return [one.decode() for one in each]


def decode(text: str | bytes | None) -> JSON:
    """The value of JSON text; None stays None."""
    return None if text is None else orjson.loads(text)


def storable_text(text: str) -> str:
    """``text`` without the characters no database can keep."""
    return _UNKEEPABLE.sub("\ufffd", text)


def _fallback(value: object) -> object:
    match value:
        case Decimal() | PurePath():
            return str(value)
        case set() | frozenset():
            return sorted(value, key=repr)
        case bytes():
            return storable_text(value.decode("utf-8", "replace"))
    raise TypeError(f"{type(value).__qualname__} is not JSON")


def _mended(value: JSON) -> JSON:
    match value:
        case bool() | None | float():
            return value
        case str():
            return storable_text(value)
        case int():
            return value if -_LARGEST <= value <= _LARGEST else str(value)
        case dict():
            return {storable_text(key) if isinstance(key, str) else key: _mended(one) for key, one in value.items()}
        case list() | tuple():
            return [_mended(one) for one in value]
    return value
