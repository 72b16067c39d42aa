"""The caller of a route: ``signed_in`` where a token is needed, ``anyone`` where guests may call.

All of these are coroutines although most wait for nothing: plain functions would each be handed to a thread.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from penstock.errors import NotAllowed, NotSignedIn
from penstock.http.service import Service
from penstock.http.tokens import GUEST, Identity

# It says in the OpenAPI description that a token is wanted; whose it is, the service's authentication finds out.
_bearer = HTTPBearer(auto_error=False, description="A JWT; `penstock token --user NAME` makes one.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def service(request: Request) -> Service:
    """What the routes work with."""
    service: Service = request.app.state.penstock
    return service


AService = Annotated[Service, Depends(service)]


async def anyone(request: Request, _credentials: Credentials, service: AService) -> Identity:
    """A user, or a guest; guests are counted by their address."""
    identity = await service.authentication.identify(request)
    if identity is None:
        service.guest_requests.take(request.client.host if request.client else "")
        return GUEST
    return identity


async def signed_in(request: Request, _credentials: Credentials, service: AService) -> Identity:
    """A user: by a token, a browser's session, or the application's own authentication."""
    identity = await service.authentication.identify(request)
    if identity is None:
        raise NotSignedIn("sign in: send a token in the Authorization header, 'Bearer TOKEN'")
    return identity


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
