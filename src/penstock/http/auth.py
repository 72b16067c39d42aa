"""The caller of a route: ``signed_in`` where a token is needed, ``anyone`` where guests may call.

All of these are coroutines although most wait for nothing: plain functions would each be handed to a thread.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from penstock.errors import NotAllowed, NotSignedIn
from penstock.http.service import Service
from penstock.http.sessions import session_token
from penstock.http.tokens import GUEST, Identity

_bearer = HTTPBearer(auto_error=False, description="A JWT; `penstock token --user NAME` makes one.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def service(request: Request) -> Service:
    """What the routes work with."""
    service: Service = request.app.state.penstock
    return service


AService = Annotated[Service, Depends(service)]


async def anyone(request: Request, credentials: Credentials, service: AService) -> Identity:
    """A user, by a token or a browser's session, or a guest; guests are counted by their address."""
    if credentials is None and "authorization" in request.headers:
        raise NotSignedIn("the Authorization header is not 'Bearer TOKEN'", code="TOKEN_INVALID")
    token = session_token(request) if credentials is None else credentials.credentials
    if token is None:
        service.guest_requests.take(request.client.host if request.client else "")
        return GUEST
    if service.tokens.may_wait:
        return await run_in_threadpool(service.tokens.read, token)
    return service.tokens.read(token)


async def signed_in(request: Request, credentials: Credentials, service: AService) -> Identity:
    """A user with a token, or with a browser's session."""
    if credentials is None and "authorization" not in request.headers and session_token(request) is None:
        raise NotSignedIn("sign in: send a token in the Authorization header, 'Bearer TOKEN'")
    return await anyone(request, credentials, service)


Anyone = Annotated[Identity, Depends(anyone)]
SignedIn = Annotated[Identity, Depends(signed_in)]


async def an_admin(who: SignedIn) -> Identity:
    """An admin."""
    if not who.admin:
        raise NotAllowed("that is for admins", code="ADMINS_ONLY")
    return who


Admin = Annotated[Identity, Depends(an_admin)]


async def submitting(who: SignedIn, service: AService) -> Identity:
    """A user who submits something: not too often."""
    service.submissions.take(who.user or "")
    return who


Submitting = Annotated[Identity, Depends(submitting)]
