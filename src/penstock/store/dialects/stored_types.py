"""What the values of our own column types are in each database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID, SafeUUID

import orjson
from sqlalchemy import CHAR, BigInteger, DateTime, Integer, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_new = object.__new__
_set = object.__setattr__

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class StoredType:
    """A column's type in one database, and what becomes of a value on its way in and out.

    None where the driver does it by itself.
    """

    type: TypeEngine[Any]
    convert_in: Convert | None = None
    """Of a value that is not None."""
    convert_out: Convert | None = None
    """Of any value, also None: one call a value, because there are many."""


@dataclass(frozen=True, slots=True)
class StoredTypes:
    """The types that differ between databases."""

    moment: StoredType
    identifier: StoredType
    payload: StoredType


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def json_of(text: str | None) -> Any:
    """A value from the text it is kept as."""
    return None if text is None else orjson.loads(text)


def _moment_of(value: int | None) -> datetime | None:
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def _uuid_of(digits: str | None) -> UUID | None:
    """A UUID from its digits, made without the checks that what we wrote ourselves does not need."""
    if digits is None:
        return None
    uuid = _new(UUID)
    _set(uuid, "int", int(digits, 16))
    _set(uuid, "is_safe", SafeUUID.unknown)
    return uuid


def _text_of(value: Any) -> str:
    return orjson.dumps(value).decode()


SERVER = StoredTypes(
    moment=StoredType(DateTime(timezone=True)),
    identifier=StoredType(Uuid()),
    payload=StoredType(JSONB(none_as_null=True)),
)
"""A server with types of its own: timestamptz, uuid, jsonb."""
SQLITE = StoredTypes(
    moment=StoredType(BigInteger(), microseconds, _moment_of),
    identifier=StoredType(CHAR(32), attrgetter("hex"), _uuid_of),
    # Not its JSON type, which turns "5" into a number.
    payload=StoredType(Text(), _text_of, json_of),
)
"""Microseconds since 1970, 32 hexadecimal digits, text."""
_TYPES_BY_DIALECT = {"sqlite": SQLITE}


def stored_types(dialect_name: str) -> StoredTypes:
    """The types of the named database."""
    return _TYPES_BY_DIALECT.get(dialect_name, SERVER)


ROW_NUMBER = BigInteger().with_variant(Integer(), "sqlite")
"""An identity column; SQLite only counts up in a column of its own INTEGER type."""
