"""The caller of a route: ``signed_in`` where a token is needed, ``anyone`` where guests may call.

A route asks them before it takes a body (:mod:`penstock.http.routing`), so each decides once for a request.
All of these are coroutines although most wait for nothing: plain functions would each be handed to a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from penstock.errors import NotAllowed, NotSignedIn
from penstock.http.bodies import note_caller
from penstock.http.limits import RateLimit, network_of
from penstock.http.service import Service
from penstock.http.sessions import session_token
from penstock.http.tokens import GUEST, Identity

_DECISIONS = "penstock.decisions"
_CHARGE = "penstock.charge"
_OLD_WORK = 0.1
"""What a submission counts that is answered by work that is there already."""

bearer = HTTPBearer(auto_error=False, description="A JWT; `penstock token --user NAME` makes one.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
Guard = Callable[[Request, HTTPAuthorizationCredentials | None, Service], Awaitable[Identity]]


async def service(request: Request) -> Service:
    """What the routes work with."""
    service: Service = request.app.state.penstock
    return service


AService = Annotated[Service, Depends(service)]


def _decide_once(guard: Guard) -> Guard:
    """The same guard, which remembers for a request what it said."""

    @wraps(guard)
    async def decide(request: Request, credentials: HTTPAuthorizationCredentials | None, service: Service) -> Identity:
        decisions: dict[Guard, Identity] = request.scope.setdefault(_DECISIONS, {})
        if guard not in decisions:
            decisions[guard] = await guard(request, credentials, service)
        return decisions[guard]

    return decide


async def _identify(request: Request, credentials: HTTPAuthorizationCredentials | None, service: Service) -> Identity:
    """A user, by a token or a browser's session, or a guest."""
    if credentials is None and "authorization" in request.headers:
        raise NotSignedIn("the Authorization header is not 'Bearer TOKEN'", code="TOKEN_INVALID")
    token = session_token(request) if credentials is None else credentials.credentials
    if token is None:
        note_caller(request.scope, None, client_network(request))
        return GUEST
    if service.tokens.may_wait:
        who = await run_in_threadpool(service.tokens.read, token)
    else:
        who = service.tokens.read(token)
    note_caller(request.scope, who.user, "")
    return who


async def _require_user(
    request: Request, credentials: HTTPAuthorizationCredentials | None, service: Service
) -> Identity:
    if credentials is None and "authorization" not in request.headers and session_token(request) is None:
        raise NotSignedIn("sign in: send a token in the Authorization header, 'Bearer TOKEN'")
    return await _identify(request, credentials, service)


@_decide_once
async def anyone(request: Request, credentials: Credentials, service: AService) -> Identity:
    """A user or a guest who looks at something; guests are counted by their address."""
    who = await _identify(request, credentials, service)
    if who is GUEST:
        service.guest_reads.take(client_network(request))
    return who


@_decide_once
async def anyone_submitting(request: Request, credentials: Credentials, service: AService) -> Identity:
    """A user or a guest who submits something: not too often."""
    who = await _identify(request, credentials, service)
    if who is GUEST:
        _charge(request, service.guest_requests, client_network(request))
    else:
        _charge(request, service.submissions, who.user or "")
    return who


@_decide_once
async def signed_in(request: Request, credentials: Credentials, service: AService) -> Identity:
    """A user with a token, or with a browser's session."""
    return await _require_user(request, credentials, service)


@_decide_once
async def an_admin(request: Request, credentials: Credentials, service: AService) -> Identity:
    """An admin."""
    who = await _require_user(request, credentials, service)
    if not who.admin:
        raise NotAllowed("that is for admins", code="ADMINS_ONLY")
    return who


@_decide_once
async def submitting(request: Request, credentials: Credentials, service: AService) -> Identity:
    """A user who submits something: not too often."""
    who = await _require_user(request, credentials, service)
    _charge(request, service.submissions, who.user or "")
    return who


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
