"""An address of the API with a slash at its end is answered as the one without.

Many clients write the address of a list so, and would have to follow a redirect for nothing.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

_API = "/api/"


class TrailingSlash:
    """ASGI middleware that takes the slash away."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request on."""
        if scope["type"] == "http" and scope["path"].endswith("/"):
            path: str = scope["path"]
            if path.removeprefix(scope.get("root_path", "")).startswith(_API):
                scope["path"] = path.rstrip("/")
        await self._app(scope, receive, send)
