"""What a browser asked for as a guest: a cookie with the ids of its requests, for when somebody signs in there.

A guest's request has no owner, and whoever has its id may look at it. The id is random, made here, and told only to
who asked. So the ids are all that a browser has to keep: there is no table behind the cookie and no name for a guest,
and who stole it could see what the ids show anyway. Ids that a client chose (an idempotency key) prove nothing, and
lead to nobody else's request. The rules are in docs/explanation/recipe-answers.md.
"""

from __future__ import annotations

from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

GUEST_COOKIE = "penstock_guest_requests"
_MAX_REMEMBERED = 20
_SEPARATOR = "."


def remembered_requests(request: Request) -> tuple[UUID, ...]:
    """What this browser asked for as a guest, newest first; what is no id in the cookie is passed over."""
    ids: list[UUID] = []
    for text in request.cookies.get(GUEST_COOKIE, "").split(_SEPARATOR)[:_MAX_REMEMBERED]:
        try:
            ids.append(UUID(text))
        except ValueError:
            continue
    return tuple(dict.fromkeys(ids))


def remember_request(request: Request, answer: Response, request_id: UUID) -> None:
    """Let the browser keep the id of a request: out of reach for scripts and other sites, and until it is closed."""
    remembered_ids = remembered_requests(request)
    ids = dict.fromkeys((request_id, *remembered_ids))
    if tuple(ids) == remembered_ids:
        return
    answer.set_cookie(
        GUEST_COOKIE,
        _SEPARATOR.join(known_id.hex for known_id in list(ids)[:_MAX_REMEMBERED]),
        path=f"{str(request.scope.get('root_path', '')).rstrip('/')}/",
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
