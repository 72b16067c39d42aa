"""Answers: JSON, written by orjson (values of our own schemas need no second validation), and files in pieces."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import anyio
import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send


class Json(Response):
    """A JSON answer."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, status_code, headers)

    def render(self, content: Any) -> bytes:
        """The body."""
        return orjson.dumps(content, option=orjson.OPT_UTC_Z)


class Streamed(StreamingResponse):
    """A file in pieces, each made when the one before is sent: when nobody listens any more, no further one is made.

    Then what makes them is closed at once, and not when it is collected as garbage.
    """

    def __init__(self, pieces: Generator[bytes], *, media_type: str, headers: Mapping[str, str]) -> None:
        super().__init__(pieces, media_type=media_type, headers=headers)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._pieces.close)


def json_text(content: Any) -> str:
    """The same as text, for an event of a stream."""
    return orjson.dumps(content, option=orjson.OPT_UTC_Z).decode()
