"""An answer is held to its shape: every member is there, is of its type, and there is no other."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

Shape = TypeVar("Shape")


def read_as(shape: type[Shape], body: Any) -> Shape:
    """The value that an answer's body is; one that does not fit is an error."""
    assert set(body) == {field.name for field in fields(cast(Any, shape))}
    return TypeAdapter(shape).validate_python(body)
