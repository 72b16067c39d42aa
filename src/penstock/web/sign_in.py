"""The way in and out of the pages: by a token, by a link that works once, or where the application says."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from fastapi import Form, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.errors import NotSignedIn
from penstock.http.authentication import TokenAuthentication
from penstock.http.bodies import limit_body
from penstock.http.head import is_head
from penstock.http.routing import Router
from penstock.http.service import Service
from penstock.http.sessions import begin_session, end_session, require_cookie_size, require_own_page
from penstock.web.answers import elsewhere, lead_to_sign_in, own_path, problem, render_page, root_of

_LARGEST_FORM = 64 * 1024
Next = Annotated[str | None, Query(alias="next")]


def add_sign_in(routes: Router, service: Service) -> None:
    """Add the addresses below ``/ui`` that have to do with signing in."""
    if isinstance(service.authentication, TokenAuthentication):
        _add_own(routes, service, service.authentication)
        return

    @routes.get("/sign-in")
    async def sign_in(request: Request, next_path: Next = None) -> Response:
        root = root_of(request)
        return lead_to_sign_in(request, f"{root}{own_path(next_path, root)}")


def _add_own(routes: Router, service: Service, authentication: TokenAuthentication) -> None:
    makes_tokens = authentication.tokens.makes_tokens

    @routes.get("/sign-in")
    async def sign_in(request: Request, next_path: Next = None) -> Response:
        return render_page(request, "sign_in.html", next_path=next_path or "", message=None, makes_tokens=makes_tokens)

    @routes.post("/sign-in")
    @limit_body(_LARGEST_FORM)
    async def sign_in_with(
        request: Request,
        token: Annotated[str, Form()] = "",
        next_path: Annotated[str, Form(alias="next")] = "",
    ) -> Response:
        require_own_page(request)
        clean_token = "".join(token.split()).removeprefix("Bearer")
        try:
            await authentication.read(clean_token)
            require_cookie_size(clean_token)
        except NotSignedIn as error:
            message = error.message if clean_token else "paste a token first"
            return render_page(
                request, "sign_in.html", status=401, next_path=next_path, message=message, makes_tokens=makes_tokens
            )
        return _let_in(request, clean_token, own_path(next_path, root_of(request)))

    @routes.post("/sign-out")
    async def sign_out(request: Request) -> Response:
        """The session ends on the server, too: whoever has copied its cookie is out as well."""
        require_own_page(request)
        with suppress(NotSignedIn):
            identity = await authentication.identify(request)
            if identity is not None:
                await run_in_threadpool(service.ended_sessions.end, identity)
        answer = elsewhere(request, "/ui/sign-in")
        end_session(answer, root=root_of(request))
        return answer

    @routes.get("/enter/{code}")
    async def enter(request: Request, code: str) -> Response:
        if is_head(request.scope):
            return elsewhere(request, "/ui/jobs")  # whoever only looks at a link, as mail programs do, uses up nothing
        token = service.links.use(code)
        if token is None:
            text = "A link signs in once, and soon. Start the server again for a new one, or sign in with a token."
            return problem(request, 410, "This link was used already, or is too old", text)
        return _let_in(request, token, "/ui/jobs")


def _let_in(request: Request, token: str, path: str) -> Response:
    answer = elsewhere(request, path)
    begin_session(answer, token, root=root_of(request), secure=request.url.scheme == "https")
    return answer
