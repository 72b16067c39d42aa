"""How a page is answered: which headers it has, and what becomes of errors on the way to it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote, urlsplit

import structlog
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from penstock.errors import NotSignedIn, PenstockError
from penstock.http.errors import status_of
from penstock.http.service import Service
from penstock.web.assets import Folders, assets, templates
from penstock.web.lifecycle_table import lifecycle_script

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_OWN_PATH = re.compile(r"/ui(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+")
_PAGE = HEADERS | {"Cache-Control": "no-store"}
_log = structlog.get_logger("penstock.web")


def root_of(request: Request) -> str:
    """The path this application is mounted under: nothing, or ``/jobs`` without a slash at its end."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def render_page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page."""
    root = root_of(request)
    folders: Folders = request.app.state.page_folders
    static = f"{root}/ui/static/{assets(folders).version}"
    environment = templates(folders)
    frame = environment.from_string(template) if "\n" in template else environment.get_template(template)
    service: Service = request.app.state.penstock
    common_values = {
        "root": root, "static": static, "path": request.url.path, "lifecycle_script": lifecycle_script(),
        "signs_in": service.tokens is not None, "now": int(time.time() * 1000),
    }  # fmt: skip
    text = frame.render(**common_values, **values)
    return HTMLResponse(text, status, headers=_PAGE)


def elsewhere(request: Request, path: str) -> RedirectResponse:
    """Another page of ours; the browser asks for it with GET."""
    return RedirectResponse(f"{root_of(request)}{path}", 303, headers=_PAGE)


def lead_to_sign_in(request: Request, address: str) -> Response:
    """The page to sign in at, ours or that of the application we are part of, and back to what was wanted."""
    service: Service = request.app.state.penstock
    if service.tokens is not None:
        return elsewhere(request, f"/ui/sign-in?next={quote(address)}")
    if service.sign_in_address is None:
        text = "This server does not sign people in itself. Sign in where you usually do, and come back."
        return problem(request, 401, "Sign in first", text)
    separator = "&" if "?" in service.sign_in_address else "?"
    return RedirectResponse(f"{service.sign_in_address}{separator}next={quote(address)}", 303, headers=_PAGE)


def own_path(text: str | None, root: str) -> str:
    """Where somebody wanted to go before they were asked to sign in: a page of ours, or else the first one.

    >>> own_path("/ui/jobs?status=failed", "")
    '/ui/jobs?status=failed'
    >>> own_path("//elsewhere.example/ui/jobs", ""), own_path("/ui/%2e%2e/docs", "")
    ('/ui/jobs', '/ui/jobs')
    """
    first = "/ui/jobs"
    if text is None or len(text) > 2000 or not text.isprintable() or "\\" in text:
        return first
    try:
        parts = urlsplit(text)
    except ValueError:
        return first
    # Segments of plain characters alone: a browser takes %2e%2e for the folder above, and would leave the pages by it.
    is_ours = parts.path.startswith(root) and _OWN_PATH.fullmatch(parts.path.removeprefix(root))
    return text.removeprefix(root) if is_ours and not parts.scheme and not parts.netloc else first


class PageRoute(APIRoute):
    """A route whose errors are pages, too; somebody who is not signed in is asked to."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind one that catches."""
        handle = super().get_route_handler()

        async def handle_page(request: Request) -> Response:
            try:
                return await handle(request)
            except NotSignedIn:
                path_and_query = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return lead_to_sign_in(request, path_and_query)
            except RequestValidationError:
                return problem(request, 404, "There is no such page", "The address is not one of ours.")
            except PenstockError as error:
                status = status_of(error)
                if status >= 500:
                    _log.error("a page failed", error=error.message, code=error.code, path=request.url.path)
                title = _TITLES_BY_CODE.get(error.code) or _TITLES.get(status, "Something went wrong")
                return problem(request, status, title, error.message, error.code)

        return handle_page


_TITLES = {
    403: "That page is for administrators",
    404: "There is no such page, or it is not yours",
    503: "The database does not answer",
}
_TITLES_BY_CODE = {"LIBRARY_MISSING": "This page needs a library that is not installed"}


def problem(request: Request, status: int, title: str, text: str, code: str | None = None) -> HTMLResponse:
    """A page that says what went wrong, and leads on."""
    return render_page(request, "problem.html", status=status, title=title, text=text, code=code)
