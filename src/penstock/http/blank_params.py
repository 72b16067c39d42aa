"""Routes that ignore a parameter without a value, as in ``?status=&page=``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response


class BlankParams(APIRoute):
    """A route for lists, whose clients often send every filter they have, set or not."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind a look at the query."""
        handle = super().get_route_handler()

        async def forgiving(request: Request) -> Response:
            parts = request.scope["query_string"].split(b"&")
            request.scope["query_string"] = b"&".join(part for part in parts if part.partition(b"=")[2])
            return await handle(Request(request.scope, request.receive))

        return forgiving
