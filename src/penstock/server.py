"""The HTTP application, put together: API, pages and applications' routes.

For ``penstock serve``, or to mount in a FastAPI application of one's own.

::

    from fastapi import FastAPI
    from penstock import Penstock
    from penstock.server import create_app

    jobs = create_app(Penstock())
    site = FastAPI(lifespan=jobs.router.lifespan_context)
    site.mount("/jobs", jobs)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool

from penstock.app import Penstock
from penstock.http import session_routes
from penstock.http.access import may_read_reference
from penstock.http.authentication import Authenticate
from penstock.http.bodies import BodyLimit
from penstock.http.errors import answer_problems
from penstock.http.head import HeadRequests
from penstock.http.hosts import AllowedHosts
from penstock.http.items import export
from penstock.http.items import routes as items
from penstock.http.jobs import control, live, live_list
from penstock.http.jobs import routes as jobs
from penstock.http.jobs.submissions import submission_routes
from penstock.http.missing_applications import missing_routes
from penstock.http.reference import describe, operation_name
from penstock.http.requests import RequestIds
from penstock.http.routing import add_routes
from penstock.http.service import Service
from penstock.http.system import health, schedules
from penstock.http.system import routes as system
from penstock.http.trailing_slash import TrailingSlash
from penstock.web.pages import add_pages

__all__ = ["create_app"]

_DESCRIPTION = """
Jobs that people wait for: durable, stoppable, honest about their progress.

Send a token in the `Authorization` header, `Bearer TOKEN`; `penstock token --user NAME` makes one. You see your own
jobs; somebody else's is a 404, like one that does not exist. Every problem has the same body, with a stable `code`.
"""


def create_app(
    app: Penstock,
    *,
    worker: bool = False,
    more: Sequence[APIRouter] = (),
    authenticate: Authenticate | None = None,
    sign_in_address: str | None = None,
) -> FastAPI:
    """An HTTP application for ``app``; with ``worker`` it also runs the jobs, in threads of the same process.

    The routes and pages of its applications come with it. ``more`` are routes of one's own, which find what they need
    by the dependencies of :mod:`penstock.http.auth`. ``authenticate`` says who a request is from, instead of tokens
    (:mod:`penstock.http.authentication`); the pages then lead who is not signed in to ``sign_in_address``, with the
    page they wanted as ``next``.
    """
    service = Service(app, authenticate, sign_in_address)

    @asynccontextmanager
    async def running(_api: FastAPI) -> AsyncIterator[None]:
        # A database that cannot be had is said now, not at the first request.
        await run_in_threadpool(service.ended_sessions.read_if_due)
        working = app.worker() if worker else None
        if working is not None:
            await run_in_threadpool(working.start)
        try:
            yield
        finally:
            service.change_feed.close()
            if working is not None:
                await run_in_threadpool(working.stop)

    api = FastAPI(
        title="Penstock",
        version=version("penstock"),
        description=_DESCRIPTION,
        lifespan=running,
        redirect_slashes=False,
        openapi_url=None,
        generate_unique_id_function=operation_name,
    )
    api.state.penstock = service
    answer_problems(api)
    api.add_middleware(TrailingSlash)
    api.add_middleware(BodyLimit, max_bytes=app.settings.max_json_bytes, memory=service.body_memory)
    api.add_middleware(AllowedHosts, service=service)
    api.add_middleware(HeadRequests)
    api.add_middleware(RequestIds, metrics=service.metrics)
    of_jobs = (live_list.routes, jobs.lists, jobs.routes, control.routes, live.routes, submission_routes(app))
    of_items = (items.lists, items.routes, export.routes)
    guests = [routes for guest in app.applications for routes in guest.routes()]
    for routes in (
        *of_jobs,
        *of_items,
        session_routes.routes,
        system.routes,
        schedules.routes,
        health.routes,
        *guests,
        *more,
        missing_routes(app),
    ):
        add_routes(api, routes)
    describe(api, who_may=may_read_reference)
    add_pages(api, service)
    return api
