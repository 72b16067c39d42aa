"""Answers as JSON, written by orjson: they are values of our own schemas, and need no second validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response


class Json(Response):
    """A JSON answer."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, status_code, headers)

    def render(self, content: Any) -> bytes:
        """The body."""
        return orjson.dumps(content, option=orjson.OPT_UTC_Z)


def json_text(content: Any) -> str:
    """The same as text, for an event of a stream."""
    return orjson.dumps(content, option=orjson.OPT_UTC_Z).decode()
