"""The addresses of applications that lack a library: an answer that names the extra, where a 404 would say nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from penstock.app import Penstock
from penstock.application import Application
from penstock.errors import LibraryMissing

PAGES = "/ui/"
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def missing_routes(app: Penstock) -> APIRouter:
    """Routes for all that lies below the addresses of applications that are not here, and for their kinds."""
    routes = APIRouter(include_in_schema=False)
    for application in app.missing_applications:
        addresses = [address for address in application.addresses if not address.startswith(PAGES)]
        addresses += [f"/api/kinds/{kind}/jobs" for kind in application.kinds]
        for address in addresses:
            for path in (address, f"{address}/{{rest:path}}"):
                routes.add_api_route(path, refuse_missing(application), methods=_METHODS)
    if app.missing_applications:
        # Only where no application takes files: the route that does comes first.
        routes.add_api_route("/api/jobs", refuse_missing(*app.missing_applications), methods=["POST"])
    return routes


def refuse_missing(*applications: Application[Any]) -> Callable[[], Awaitable[Response]]:
    """A handler that says which extras bring the applications."""
    reason = "; ".join(filter(None, (application.why_missing() for application in applications)))

    async def refuse() -> Response:
        raise LibraryMissing(reason)

    return refuse
