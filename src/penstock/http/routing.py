"""Routes that a server takes as they were built.

FastAPI builds every route of a router that is included a second time, with all its schemas, when the first request
comes: somebody waits for that. What it would change is the name of an operation, so :class:`Router` gives that at once.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI

from penstock.http.reference import operation_name


class Router(APIRouter):
    """An ``APIRouter`` for a server of ours, with the options of one.

    >>> routes = Router(prefix="/api/notes", tags=["notes"])
    >>> @routes.get("")
    ... def list_notes() -> list[str]: return []
    >>> [route.unique_id for route in routes.routes]
    ['listNotes']
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(generate_unique_id_function=operation_name, **options)


def add_routes(api: FastAPI | Router, routes: APIRouter) -> None:
    """Put routes behind those that are there; a plain ``APIRouter`` is included as FastAPI does it."""
    if isinstance(routes, Router):
        api.routes.extend(routes.routes)
    else:
        api.include_router(routes)
