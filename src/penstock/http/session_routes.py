"""``/api/sessions/end``: signing out everywhere, or signing others out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import structlog
from fastapi import Body
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from penstock.errors import InvalidInput, NotAllowed
from penstock.http.auth import AService, SignedIn
from penstock.http.errors import documented
from penstock.http.responses import Json
from penstock.http.routing import Router
from penstock.lifecycle.bounds import CALLER

routes = Router(prefix="/api/sessions", tags=["sessions"])
_log = structlog.get_logger("penstock.http")


class SessionsToEnd(BaseModel):
    """Whose sessions; one's own unless somebody is named."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"user": "ada"}]})

    user: str | None = Field(default=None, min_length=1, max_length=CALLER.longest, description="For admins.")
    everybody: bool = Field(default=False, strict=True, description="All users and programs, oneself too; for admins.")


class SessionsEnded(BaseModel):
    """What was ended."""

    user: str | None = Field(description="Whose sessions; null for everybody's.")
    issued_before: datetime = Field(description="Tokens that were issued before this are void.")


@routes.post(
    "/end",
    summary="End sessions",
    response_model=SessionsEnded,
    responses=documented(400, 401, 403, 413, 422, 503),
)
def end_sessions(who: SignedIn, service: AService, whose: Annotated[SessionsToEnd | None, Body()] = None) -> Response:
    """Every token that was issued until now is void: one's own, a user's, or everybody's.

    This server knows at once, others of the same database within `PENSTOCK_SESSION_CHECK_SECONDS`; event streams end
    with their session.
    """
    choice = whose or SessionsToEnd()
    if choice.everybody and choice.user is not None:
        raise InvalidInput("say a user or everybody, not both", field="everybody")
    user = None if choice.everybody else choice.user or who.user
    if user != who.user and not who.admin:
        raise NotAllowed("the sessions of others are ended by admins", code="ADMINS_ONLY")
    if who.issued_at is None:
        raise InvalidInput(
            "sessions are the business of the application that signs people in: end them there",
            code="SESSIONS_FROM_ELSEWHERE",
        )
    moment = service.ended_sessions.end_all_of(user)
    _log.info("sessions ended", user=user, everybody=choice.everybody, by=who.user)
    return Json(SessionsEnded(user=user, issued_before=moment).model_dump())
