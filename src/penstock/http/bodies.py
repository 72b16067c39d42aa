"""How large a request's body may be."""

from __future__ import annotations

from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from penstock.http.errors import too_large


class BodyLimit(RequestBodyLimitMiddleware):
    """Starlette's limit counts the bytes that arrive; a declared length that is too large is refused here."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, unless its body is too large."""
        if scope["type"] == "http" and _announced_bytes(scope) > self.max_body_size:
            await too_large(Request(scope))(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _announced_bytes(scope: Scope) -> int:
    text = Request(scope).headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else 0
