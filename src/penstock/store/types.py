"""Column types that differ between databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, SafeUUID

import orjson
from sqlalchemy import CHAR, JSON, BigInteger, DateTime, Integer, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect as SQLAlchemyDialect
from sqlalchemy.types import TypeDecorator, TypeEngine

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_new = object.__new__
_set = object.__setattr__


class Moment(TypeDecorator[datetime]):
    """A point in time, always with its zone: timestamptz, or microseconds since 1970 where there is none."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: SQLAlchemyDialect) -> TypeEngine[datetime] | TypeEngine[int]:
        """Microseconds on SQLite, timestamptz elsewhere."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: SQLAlchemyDialect) -> datetime | int | None:
        """A datetime on its way in."""
        if value is None or dialect.name != "sqlite":
            return value
        return microseconds(value)

    def process_result_value(self, value: datetime | int | None, dialect: SQLAlchemyDialect) -> datetime | None:
        """A datetime on its way out."""
        if isinstance(value, int):
            return _EPOCH + timedelta(microseconds=value)
        return value


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


class Identifier(TypeDecorator[UUID]):
    """A UUID: the database's own type, or 32 hexadecimal digits where there is none."""

    impl = Uuid
    cache_ok = True

    def load_dialect_impl(self, dialect: SQLAlchemyDialect) -> TypeEngine[Any]:
        """Digits on SQLite."""
        return dialect.type_descriptor(CHAR(32) if dialect.name == "sqlite" else Uuid())

    def process_bind_param(self, value: UUID | None, dialect: SQLAlchemyDialect) -> UUID | str | None:
        """A UUID on its way in."""
        return value if value is None or dialect.name != "sqlite" else value.hex

    def result_processor(self, dialect: SQLAlchemyDialect, coltype: object) -> Callable[[Any], Any] | None:
        """A UUID on its way out; one call a value, because there are many."""
        return _uuid_of if dialect.name == "sqlite" else super().result_processor(dialect, coltype)


def _uuid_of(digits: str | None) -> UUID | None:
    """A UUID from its digits, made without the checks that what we wrote ourselves does not need."""
    if digits is None:
        return None
    made = _new(UUID)
    _set(made, "int", int(digits, 16))
    _set(made, "is_safe", SafeUUID.unknown)
    return made


def json_of(text: str | None) -> Any:
    """A value from the text it is kept as."""
    return None if text is None else orjson.loads(text)


class PayloadType(TypeDecorator[Any]):
    """A JSON column: jsonb where the database has it, plain text on SQLite (its JSON type turns "5" into a number)."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: SQLAlchemyDialect) -> TypeEngine[Any]:
        """Text on SQLite, jsonb on PostgreSQL."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(JSONB(none_as_null=True))

    def process_bind_param(self, value: Any, dialect: SQLAlchemyDialect) -> Any:
        """A value on its way in."""
        if value is None or dialect.name != "sqlite":
            return value
        return orjson.dumps(value).decode()

    def result_processor(self, dialect: SQLAlchemyDialect, coltype: object) -> Callable[[Any], Any] | None:
        """A value on its way out; one call a value, because there are many."""
        return json_of if dialect.name == "sqlite" else super().result_processor(dialect, coltype)


Payload = PayloadType()

RowNumber = BigInteger().with_variant(Integer(), "sqlite")
"""An identity column; SQLite only counts up in a column of its own INTEGER type."""
