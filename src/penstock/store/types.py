"""Column types of ours; what they are in each database is in :mod:`penstock.store.dialects.stored_types`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import JSON, DateTime, Uuid
from sqlalchemy.engine import Dialect as SQLAlchemyDialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from penstock.store.dialects.stored_types import ROW_NUMBER, StoredType, stored_types

PythonValue = TypeVar("PythonValue")


class _OwnType(TypeDecorator[PythonValue]):
    """A type that each database keeps in its own way."""

    impl: Any = Uuid
    cache_ok = True

    def stored_type(self, dialect: SQLAlchemyDialect) -> StoredType:
        """What it is in the dialect's database."""
        raise NotImplementedError

    def load_dialect_impl(self, dialect: SQLAlchemyDialect) -> TypeEngine[Any]:
        """The database's own type."""
        return dialect.type_descriptor(self.stored_type(dialect).type)

    def bind_processor(self, dialect: SQLAlchemyDialect) -> Callable[[Any], Any] | None:
        """A value on its way in."""
        convert = self.stored_type(dialect).convert_in
        if convert is None:
            return super().bind_processor(dialect)
        return lambda value: None if value is None else convert(value)

    def result_processor(self, dialect: SQLAlchemyDialect, coltype: object) -> Callable[[Any], Any] | None:
        """A value on its way out."""
        return self.stored_type(dialect).convert_out or super().result_processor(dialect, coltype)


class Moment(_OwnType[datetime]):
    """A point in time, always with its zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def stored_type(self, dialect: SQLAlchemyDialect) -> StoredType:
        """A timestamp with its zone, or a number."""
        return stored_types(dialect.name).moment


class Identifier(_OwnType[UUID]):
    """A UUID."""

    impl = Uuid
    cache_ok = True

    def stored_type(self, dialect: SQLAlchemyDialect) -> StoredType:
        """A UUID, or its digits."""
        return stored_types(dialect.name).identifier


class PayloadType(_OwnType[Any]):
    """A JSON column."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def stored_type(self, dialect: SQLAlchemyDialect) -> StoredType:
        """JSON, or its text."""
        return stored_types(dialect.name).payload


Payload = PayloadType()
RowNumber = ROW_NUMBER
