"""The caller of a route: ``signed_in`` where a token is needed, ``anyone`` where guests may call.

A route asks them before it takes a body (:mod:`penstock.http.routing`), and FastAPI once more.
All are coroutines although most wait for nothing: plain functions would each be handed to a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from penstock.errors import NotAllowed, NotSignedIn
from penstock.http.bodies import note_caller
from penstock.http.limits import RateLimit, network_of
from penstock.http.service import Service
from penstock.http.tokens import GUEST, Identity

_DECISIONS = "penstock.decisions"
_CHARGE = "penstock.charge"
_OLD_WORK = 0.1
"""What a submission counts that is answered by work that is there already."""

# It says in the OpenAPI description that a token is wanted; whose it is, the service's authentication finds out.
bearer = HTTPBearer(auto_error=False, description="A JWT; `penstock token --user NAME` makes one.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
Guard = Callable[[Request, HTTPAuthorizationCredentials | None, Service], Awaitable[Identity]]


async def service(request: Request) -> Service:
    """What the routes work with."""
    service: Service = request.app.state.penstock
    return service


AService = Annotated[Service, Depends(service)]


def _guard(*, lets_guests_in: bool = False, admins_only: bool = False, submits: bool = False) -> Guard:
    """Who may call a route, found out once for a request: by a token, a browser's session or the application's own way.

    A submission is counted, and what a guest looks at; users by their names, guests by their networks.
    """

    async def decide(request: Request, credentials: Credentials, service: AService) -> Identity:
        decisions: dict[Guard, Identity] = request.scope.setdefault(_DECISIONS, {})
        if decide in decisions:
            return decisions[decide]
        identity = await service.authentication.identify(request) or GUEST
        network = "" if identity.user else client_network(request)
        note_caller(request.scope, identity.user, network)
        if identity is GUEST and not lets_guests_in:
            raise NotSignedIn("sign in: send a token in the Authorization header, 'Bearer TOKEN'")
        if admins_only and not identity.admin:
            raise NotAllowed("that is for admins", code="ADMINS_ONLY")
        if submits:
            limit = service.guest_requests if identity is GUEST else service.submissions
            _charge(request, limit, identity.user or network)
        elif identity is GUEST:
            service.guest_reads.take(network)
        decisions[decide] = identity
        return identity

    return decide


anyone = _guard(lets_guests_in=True)
"""A user or a guest who looks at something."""
anyone_submitting = _guard(lets_guests_in=True, submits=True)
"""A user or a guest who submits something: not too often."""
signed_in = _guard()
"""A user."""
an_admin = _guard(admins_only=True)
"""An admin."""
submitting = _guard(submits=True)
"""A user who submits something: not too often."""

GUARDS: frozenset[Guard] = frozenset({anyone, anyone_submitting, signed_in, an_admin, submitting})
"""All of them."""

Anyone = Annotated[Identity, Depends(anyone)]
AnyoneSubmitting = Annotated[Identity, Depends(anyone_submitting)]
SignedIn = Annotated[Identity, Depends(signed_in)]
Admin = Annotated[Identity, Depends(an_admin)]
Submitting = Annotated[Identity, Depends(submitting)]


def _charge(request: Request, limit: RateLimit, key: str) -> None:
    """Count a submission as new work, until somebody says that it was not."""
    limit.take(key)
    request.scope[_CHARGE] = limit, key


def count_less(request: Request) -> None:
    """This submission was answered by what is there already, and counts a tenth of one that makes work."""
    charge: tuple[RateLimit, str] | None = request.scope.pop(_CHARGE, None)
    if charge is not None:
        limit, key = charge
        limit.give_back(key, 1.0 - _OLD_WORK)


def client_network(request: Request) -> str:
    """What a guest is counted by: their address."""
    return network_of(request.client.host) if request.client else ""
