"""Routes that a server takes as they were built, and that know who asks before they take a body.

FastAPI builds every route of a router that is included a second time, with all its schemas, when the first request
comes: somebody waits for that. What it would change is the name of an operation, so :class:`Router` gives that at once.

FastAPI also reads and parses a body before it looks at the dependencies of a route, so that strangers could send bodies
to addresses that refuse them. :class:`GuardedRoute` asks the guards of :mod:`penstock.http.auth` first.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from penstock.http.auth import GUARDS, Guard, bearer
from penstock.http.bodies import BodyRequest
from penstock.http.reference import operation_name


class GuardedRoute(APIRoute):
    """A route that knows who asks, and whether they may, before it takes the first byte of a body."""

    @property
    def guards(self) -> list[Guard]:
        """Those that its function names."""
        return [part.call for part in self.dependant.dependencies if part.call in GUARDS]

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind the guards where it takes a body; without one FastAPI asks them first."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle
        guards = self.guards

        async def guard_and_handle(request: Request) -> Response:
            for guard in guards:
                await guard(request, await bearer(request), request.app.state.penstock)
            return await handle(BodyRequest(request.scope, request.receive))

        return guard_and_handle


class Router(APIRouter):
    """An ``APIRouter`` for a server of ours, with the options of one.

    >>> routes = Router(prefix="/api/notes", tags=["notes"])
    >>> @routes.get("")
    ... def list_notes() -> list[str]: return []
    >>> [route.unique_id for route in routes.routes]
    ['listNotes']
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("route_class", GuardedRoute)
        super().__init__(generate_unique_id_function=operation_name, **options)


def add_routes(api: FastAPI | Router, routes: APIRouter) -> None:
    """Put routes behind those that are there; a plain ``APIRouter`` is included as FastAPI does it."""
    if isinstance(routes, Router):
        api.routes.extend(routes.routes)
    else:
        api.include_router(routes)
