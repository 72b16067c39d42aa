"""The addresses of the pages. A page is a frame; its modules fill it from the API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any
from uuid import UUID

from fastapi import FastAPI, Form, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.application import Page
from penstock.errors import NotSignedIn, SwitchedOff
from penstock.http.auth import AService, SignedIn
from penstock.http.bodies import limit_body
from penstock.http.forms import StartForm, start_forms
from penstock.http.missing_applications import PAGES, refuse_missing
from penstock.http.routing import Router, add_routes
from penstock.http.service import Service
from penstock.http.sessions import begin_session, end_session, require_own_page
from penstock.lifecycle.states import OPEN_STATUSES, ItemStatus, Phase
from penstock.lifecycle.transitions import TRANSITIONS
from penstock.web.answers import HEADERS, PageRoute, elsewhere, own_path, problem, render_page, root_of
from penstock.web.assets import assets
from penstock.web.lifecycle_table import lifecycle_table

_LONGEST_TOKEN = 10_000
_LARGEST_FORM = 64 * 1024
_MAY_RUN_AGAIN = (ItemStatus.ERROR, ItemStatus.NOT_FOUND)
Next = Annotated[str | None, Query(alias="next")]


@dataclass(frozen=True, slots=True)
class Screens:
    """Which pages there are here, and which forms to start jobs with."""

    pending: bool
    forms: list[StartForm]
    guests: tuple[Page, ...]
    """The pages that applications bring."""
    summary: tuple[str, ...]
    """What kinds say tells their items apart, beside a title."""

    def results_page(self, kind: str) -> Page | None:
        """Where the results of a kind wait for their owners."""
        return next((page for page in self.guests if kind in page.results_of), None)


def add_pages(api: FastAPI, service: Service) -> None:
    """Put the pages into an application; what they show depends on the routes it has."""
    guest_pages = [(guest.application.name, pages) for guest in service.app.applications if (pages := guest.pages())]
    folders = tuple((name, pages.folder) for name, pages in guest_pages if pages.folder is not None)
    api.state.page_folders = folders

    @cache
    def screens() -> Screens:
        # Asked for with the first page, when all routes are there.
        document = api.openapi()
        return Screens(
            pending=service.app.settings.pending_dashboard_enabled,
            forms=start_forms(document),
            guests=tuple(page for _, pages in guest_pages for page in pages.pages),
            summary=tuple(dict.fromkeys(name for name, _ in service.app.kinds.summary())),
        )

    routes = Router(prefix="/ui", include_in_schema=False, route_class=PageRoute)

    def page(request: Request, template: str, who: SignedIn, **values: Any) -> Response:
        return render_page(request, template, who=who, screens=screens(), **values)

    @api.get("/", include_in_schema=False)
    @routes.get("")
    @routes.get("/")
    async def first(request: Request) -> Response:
        return elsewhere(request, "/ui/jobs")

    @routes.get("/sign-in")
    async def sign_in(request: Request, next_path: Next = None) -> Response:
        return render_page(
            request, "sign_in.html", next_path=next_path or "", message=None, makes_tokens=service.tokens.makes_tokens
        )

    @routes.post("/sign-in")
    @limit_body(_LARGEST_FORM)
    async def sign_in_with(
        request: Request,
        token: Annotated[str, Form(max_length=_LONGEST_TOKEN)] = "",
        next_path: Annotated[str, Form(alias="next")] = "",
    ) -> Response:
        require_own_page(request)
        clean_token = "".join(token.split()).removeprefix("Bearer")
        try:
            await run_in_threadpool(service.tokens.read, clean_token)
        except NotSignedIn as error:
            message = error.message if clean_token else "paste a token first"
            return render_page(
                request, "sign_in.html", status=401, next_path=next_path, message=message,
                makes_tokens=service.tokens.makes_tokens,
            )  # fmt: skip
        return _signed_in(request, clean_token, own_path(next_path, root_of(request)))

    @routes.post("/sign-out")
    async def sign_out(request: Request) -> Response:
        require_own_page(request)
        answer = elsewhere(request, "/ui/sign-in")
        end_session(answer, root=root_of(request))
        return answer

    @routes.get("/enter/{code}")
    async def enter(request: Request, code: str) -> Response:
        token = service.links.use(code)
        if token is None:
            text = "A link signs somebody in once. Start the server again for a new one, or sign in with a token."
            return problem(request, 410, "This link was used already", text)
        return _signed_in(request, token, "/ui/jobs")

    @routes.get("/jobs")
    def jobs(request: Request, who: SignedIn) -> Response:
        kinds = sorted(kind.name for kind in service.app.kinds)
        return page(request, "jobs.html", who, kinds=kinds, lifecycle=lifecycle_table(), forms=screens().forms)

    @routes.get("/jobs/{job_id}")
    def job(request: Request, job_id: UUID, who: SignedIn, service: AService) -> Response:
        found_job = service.app.acting_as(who.caller).jobs.get(job_id)
        return page(
            request,
            "job.html",
            who,
            job=found_job,
            results_page=screens().results_page(found_job.kind),
            phases=list(Phase),
            transitions=TRANSITIONS,
        )

    @routes.get("/pending")
    def pending(request: Request, who: SignedIn) -> Response:
        if not screens().pending:
            raise SwitchedOff(
                "the list of all that waits is switched off; PENDING_DASHBOARD_ENABLED switches it on",
                code="PENDING_DASHBOARD_DISABLED",
            )
        kinds = sorted(kind.name for kind in service.app.kinds)
        return page(
            request, "pending.html", who, kinds=kinds, ended=_MAY_RUN_AGAIN, statuses=[*OPEN_STATUSES, *_MAY_RUN_AGAIN]
        )

    @routes.get("/system")
    def system(request: Request, who: SignedIn) -> Response:
        if not who.admin:
            return problem(
                request, 403, "That page is for administrators",
                "It shows what all users' jobs and workers do. Sign in with an administrator's token to see it.",
            )  # fmt: skip
        return page(request, "system.html", who)

    for name, pages in guest_pages:
        for brought_page in pages.pages:
            # A template's name leads to a file; a template itself is taken as it is.
            template = brought_page.source or f"{name}/{brought_page.template}"
            routes.get(f"/{brought_page.address}")(_frame(page, template))

    for application in service.app.missing_applications:
        for address in application.addresses:
            if address.startswith(PAGES):
                routes.get(address.removeprefix("/ui"))(refuse_missing(application))

    @routes.get("/static/{version}/{name:path}")
    async def static(version: str, name: str) -> Response:
        file = assets(folders).files.get(name)
        if file is None:
            return Response(status_code=404, headers=HEADERS)
        cache_control = "public, max-age=31536000, immutable" if version == assets(folders).version else "no-cache"
        return Response(file.body, media_type=file.media_type, headers=HEADERS | {"Cache-Control": cache_control})

    @routes.get("/{rest:path}")
    async def nothing(request: Request, rest: str) -> Response:
        return problem(request, 404, "There is no such page", f"Nothing is at /ui/{rest[:200]}.")

    add_routes(api, routes)


def _frame(page: Callable[..., Response], template: str) -> Callable[..., Response]:
    """The handler of an application's page."""

    def show(request: Request, who: SignedIn) -> Response:
        return page(request, template, who)

    return show


def _signed_in(request: Request, token: str, path: str) -> Response:
    answer = elsewhere(request, path)
    begin_session(answer, token, root=root_of(request), secure=request.url.scheme == "https")
    return answer
