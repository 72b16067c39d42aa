"""Numbers in bodies of requests: pydantic would take ``true`` and ``"4"`` for some, and JSON Schema does not."""

from __future__ import annotations

from pydantic import BeforeValidator


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number")
    return value


NUMBER = BeforeValidator(_number)
"""JSON's numbers alone; a whole one may be written as 4.0."""
