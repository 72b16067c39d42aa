"""HEAD, wherever GET is: the same answer, without its body."""

from __future__ import annotations

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_IS_HEAD = "penstock.is_head"


def is_head(scope: Scope) -> bool:
    """Is only the head of the answer wanted? For the rare GET that changes something."""
    return bool(scope.get(_IS_HEAD))


class HeadRequests:
    """ASGI middleware that has a HEAD answered as a GET, and keeps the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        as_get = {**scope, "method": "GET", _IS_HEAD: True}
        is_answered = False

        async def receive_until_answered() -> Message:
            return {"type": "http.disconnect"} if is_answered else await receive()

        async def send_head(message: Message) -> None:
            nonlocal is_answered
            if not is_answered:
                await send(message)
                if message["type"] == "http.response.start":
                    is_answered = True
                    await send({"type": "http.response.body", "body": b""})
            elif message.get("more_body"):
                # A stream, which has to end: nobody reads it.
                raise ClientDisconnect

        try:
            await self._app(as_get, receive_until_answered, send_head)
        except ClientDisconnect:
            if not is_answered:
                raise
        finally:
            if "route" in as_get:
                scope["route"] = as_get["route"]
