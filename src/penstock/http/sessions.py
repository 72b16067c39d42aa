"""Sessions of browsers: a cookie that holds the person's token, and links that sign somebody in once.

A browser sends a cookie with every request to us, also with those another site made it send. So a cookie counts for
a request that changes something only when the browser says that one of our own pages made it: ``Sec-Fetch-Site``, or
``Origin`` where a browser is too old for that. Clients that are no browsers use the ``Authorization`` header.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from penstock.errors import NotAllowed, NotSignedIn

SESSION_COOKIE = "penstock_session"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""Requests that change nothing."""
_LONGEST_IN_COOKIE = 3_900
"""Browsers keep 4,096 bytes of a cookie, and some count its name and attributes."""
_MAX_LINKS = 1_000
LINK_SECONDS = 15 * 60.0
"""How long a link may be used."""


class Links:
    """Links that sign somebody in, each once and soon. Only their digests are kept, in this process's memory."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._tokens: dict[bytes, tuple[str, float]] = {}
        self._changing = threading.Lock()

    def make(self, token: str) -> str:
        """The code of a new link, which will stand for ``token``."""
        code = secrets.token_urlsafe(24)
        with self._changing:
            while len(self._tokens) >= _MAX_LINKS:
                del self._tokens[next(iter(self._tokens))]
            self._tokens[_digest(code)] = token, self._now() + LINK_SECONDS
        return code

    def use(self, code: str) -> str | None:
        """The token a code stands for; nothing the second time, nor when it is too late."""
        with self._changing:
            token, until = self._tokens.pop(_digest(code), (None, 0.0))
        return token if self._now() < until else None


def _digest(code: str) -> bytes:
    return sha256(code.encode(errors="replace")).digest()


def session_token(request: HTTPConnection) -> str | None:
    """The token of the browser's session, if it has one that counts for this request."""
    if "cookie" not in request.headers:
        return None
    token = request.cookies.get(SESSION_COOKIE)
    if token is None:
        return None
    if request.scope.get("method", "GET") not in SAFE_METHODS:
        require_own_page(request)
    return token


def require_own_page(request: HTTPConnection) -> None:
    """Refuse what a page of somebody else made a browser send."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        ours = site == "same-origin"
    else:
        ours = urlsplit(request.headers.get("origin", "")).netloc == request.headers.get("host", "-")
    if not ours:
        raise NotAllowed(
            "a session counts only for requests of our own pages; other clients send 'Authorization: Bearer TOKEN'",
            code="OTHER_ORIGIN",
        )


def require_cookie_size(token: str) -> None:
    """Refuse a token that browsers would drop without a word."""
    if len(token) > _LONGEST_IN_COOKIE:
        raise NotSignedIn(
            f"the token is good, but has {len(token):,} characters, and a browser keeps no more than "
            f"{_LONGEST_IN_COOKIE:,}: ask your identity provider for one with fewer claims, such as groups; "
            "programs may send it in the Authorization header as it is",
            code="TOKEN_TOO_LONG",
        )


def begin_session(answer: Response, token: str, *, root: str, secure: bool) -> None:
    """Give the browser its cookie: out of reach for scripts, and gone when the browser is closed."""
    answer.set_cookie(SESSION_COOKIE, token, path=f"{root}/", httponly=True, samesite="lax", secure=secure)


def end_session(answer: Response, *, root: str) -> None:
    """Take it back."""
    answer.delete_cookie(SESSION_COOKIE, path=f"{root}/", httponly=True, samesite="lax")
