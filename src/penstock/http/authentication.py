"""How a request's caller is found: by our tokens, or in a team's own way.

``create_app(authenticate=…)`` takes a function, ``async`` or not, that is given the connection (its ``headers``, its
``cookies``, and what the site's middleware has put into its ``state`` or ``session``) and answers with an
:class:`Identity`, or with ``None`` for nobody. It may be the site's own FastAPI dependency, or call that; an
``HTTPException`` of 401 or 403 is understood. A plain function runs in a thread.

::

    async def authenticate(connection: HTTPConnection) -> Identity | None:
        person = await people.by_session(connection.cookies.get("session"))
        return person and Identity(person.name, admin=person.is_staff)
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from penstock.errors import ConfigurationError, NotAllowed, NotSignedIn, PenstockError
from penstock.http.ended_sessions import EndedSessions
from penstock.http.sessions import SAFE_METHODS, require_own_page, session_token
from penstock.http.tokens import Identity, Tokens, is_user_name

Authenticate = Callable[[HTTPConnection], Awaitable[Identity | None] | Identity | None]
"""A team's own way: who a request is from."""
_BEARER = "bearer"


class TokenAuthentication:
    """By a token: in the ``Authorization`` header, or in a browser's session."""

    def __init__(self, tokens: Tokens, ended_sessions: EndedSessions) -> None:
        self.tokens = tokens
        self._ended_sessions = ended_sessions

    async def identify(self, connection: HTTPConnection) -> Identity | None:
        """Whose token it is; None without one."""
        header = connection.headers.get("authorization")
        token = session_token(connection) if header is None else _bearer_token(header)
        return None if token is None else await self.read(token)

    async def read(self, token: str) -> Identity:
        """Who a token speaks for, unless its session was ended."""
        if self.tokens.may_wait:
            identity = await run_in_threadpool(self.tokens.read, token)
        else:
            identity = self.tokens.read(token)
        await self._ended_sessions.require_open(identity)
        return identity


def _bearer_token(header: str) -> str:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != _BEARER or not token:
        raise NotSignedIn("the Authorization header is not 'Bearer TOKEN'", code="TOKEN_INVALID")
    return token


class OwnAuthentication:
    """By a function of the application that we are part of.

    We do not know what it goes by. So whatever a browser sends by itself, a cookie or a password it remembers, counts
    for a change only where one of our own pages asked for it; a bearer token is never sent by itself.
    """

    def __init__(self, authenticate: Authenticate, ended_sessions: EndedSessions) -> None:
        self._authenticate = authenticate
        self._ended_sessions = ended_sessions
        self._is_async = inspect.iscoroutinefunction(authenticate) or inspect.iscoroutinefunction(
            getattr(authenticate, "__call__", None)  # noqa: B004 - an object whose call is a coroutine
        )

    async def identify(self, connection: HTTPConnection) -> Identity | None:
        """Who it says."""
        try:
            identity = await self._ask(connection)
        except HTTPException as error:
            raise _as_ours(error) from error
        if identity is None:
            return None
        if not isinstance(identity, Identity) or not is_user_name(identity.user):
            raise ConfigurationError(
                f"authenticate answered with {type(identity).__name__}; it must be None, or an Identity whose user "
                "has 1 to 255 printable characters",
                code="IDENTITY_INVALID",
            )
        if connection.scope.get("method", "GET") not in SAFE_METHODS and _may_be_sent_by_itself(connection):
            require_own_page(connection)
        await self._ended_sessions.require_open(identity)
        return identity

    async def _ask(self, connection: HTTPConnection) -> object:
        answer = (
            self._authenticate(connection)
            if self._is_async
            else await run_in_threadpool(self._authenticate, connection)
        )
        return await answer if inspect.isawaitable(answer) else answer


def _may_be_sent_by_itself(connection: HTTPConnection) -> bool:
    """Could a browser have sent this without a script that knows a token?"""
    headers = connection.headers
    if headers.get("authorization", "").partition(" ")[0].lower() == _BEARER:
        return False
    return any(name in headers for name in ("cookie", "sec-fetch-site", "origin"))


def _as_ours(error: HTTPException) -> PenstockError:
    """What a dependency of FastAPI raises, in our words; anything but a refusal is passed on."""
    if error.status_code == 401:
        return NotSignedIn(str(error.detail), code="TOKEN_INVALID")
    if error.status_code == 403:
        return NotAllowed(str(error.detail))
    raise error
