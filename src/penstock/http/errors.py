"""Errors over HTTP: one table from what went wrong to a status, and one body for all of them.

The body is ``{"code", "message", "detail", "field", "request_id"}``: the code is stable and for programs, the message
is for people, the field is the one at fault where there is one. ``detail`` is the message again, for clients that were
written for FastAPI's own errors and show that.
"""

from __future__ import annotations

import math
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match

from penstock.errors import (
    ChangedMeanwhile,
    ConfigurationError,
    FileNotFound,
    InvalidInput,
    JobNotFound,
    JobPruned,
    KindUnknown,
    LibraryMissing,
    NotAllowed,
    NotSignedIn,
    PayloadTooLarge,
    PenstockError,
    StatementRefused,
    StoreRefused,
    StoreUnavailable,
    SwitchedOff,
    TooManyRequests,
    TransitionRefused,
)
from penstock.http.bodies import BodyRefused

_log = structlog.get_logger("penstock.http")
SAFE_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""Of every answer that does not say otherwise: nobody keeps it, and nobody takes it for something else."""

STATUSES: dict[type[PenstockError], int] = {
    InvalidInput: 422,
    PayloadTooLarge: 413,
    KindUnknown: 404,
    JobNotFound: 404,
    JobPruned: 410,
    FileNotFound: 404,
    TransitionRefused: 409,
    ChangedMeanwhile: 412,
    NotSignedIn: 401,
    NotAllowed: 403,
    TooManyRequests: 429,
    SwitchedOff: 503,
    StoreUnavailable: 503,
    StoreRefused: 422,
    StatementRefused: 500,
    LibraryMissing: 503,
    ConfigurationError: 500,
    PenstockError: 500,
}
"""The nearest class counts."""

_CODES = {404: "NO_SUCH_ADDRESS", 405: "METHOD_NOT_ALLOWED"}
_BY_CODE = {"BUSY": 409, "SCHEDULE_UNKNOWN": 404, "PENDING_DASHBOARD_DISABLED": 404, "SOURCE_UNAVAILABLE": 503}
_DEFECT = "something went wrong here, not in your request; the request id leads to it in the server's log"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Problem(BaseModel):
    """What went wrong."""

    code: str = Field(description="Stable, for programs.", examples=["JOB_NOT_FOUND"])
    message: str = Field(description="For people.", examples=["there is no job 0198…, or it is not yours"])
    detail: str = Field(description="The message again, where clients of FastAPI look for it.")
    field: str | None = Field(default=None, description="The field at fault, where there is one.")
    request_id: str | None = Field(default=None, description="The same as in the server's log.")


def documented(*statuses: int, streams: bool = False) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that may answer with these problems.

    One that ``streams`` names the body itself: FastAPI would say that a problem comes as a stream, too.
    """
    body: dict[str, Any] = {"content": _PROBLEM_AS_JSON} if streams else {"model": Problem}
    # What may be missing may also have been there: its time was over.
    every = sorted({*statuses, *([410] if 404 in statuses else [])})
    return {status: {**body, "description": _DESCRIPTIONS[status]} for status in every}


_PROBLEM_AS_JSON = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_DESCRIPTIONS = {
    400: "The body cannot be read at all.",
    401: "No token, or one that is not good.",
    403: "Not for this user.",
    404: "There is no such thing, or it belongs to somebody else.",
    409: "Its state does not allow that.",
    410: "It was there, and has been deleted: it was kept for as long as its kind says.",
    412: "It is not any more what `If-Match` says; read it again.",
    413: "Larger than the limit.",
    422: "Something in the request is wrong; `field` says what.",
    429: "Too often; `Retry-After` says when again.",
    503: "The database, or a source of files, does not answer; ask again.",
}


def status_of(error: PenstockError) -> int:
    """The status for an error."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def answer_problems(api: FastAPI) -> None:
    """Let every error of ``api`` become such a body; what nobody foresaw, :mod:`penstock.http.requests` answers."""
    api.add_exception_handler(PenstockError, _ours)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _frameworks)


def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, PenstockError)
    status = status_of(error)
    headers = {}
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if isinstance(error, StoreUnavailable):
        headers["Retry-After"] = "1"
    if isinstance(error, StatementRefused):
        # What the database says names our tables and columns: that is for the log.
        _log.error("a request met a defect", code=error.code, path=request.url.path, exc_info=error)
        return _answer(request, status, error.code, _DEFECT)
    if status >= 500:
        _log.error("a request failed", error=error.message, code=error.code, path=request.url.path)
    field = getattr(error, "field", None)
    return _answer(request, status, error.code, error.message, field, headers)


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        # Its place is a position in the text: no field is at fault, because there are none yet.
        line, column = _place(str(error.body), first["loc"][-1])
        reason = first.get("ctx", {}).get("error", "it cannot be read")
        return _answer(request, 422, "INVALID_INPUT", f"the body is not JSON: {reason}, line {line}, column {column}")
    field = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    return _answer(request, 422, "INVALID_INPUT", f"{field or 'the request'}: {first['msg']}", field or None)


def _place(text: str, position: int) -> tuple[int, int]:
    r"""A position in a text as its line and column, both from 1.

    >>> _place('{"a": 1,\n x}', 10)
    (2, 2)
    """
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _frameworks(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = error.code if isinstance(error, BodyRefused) else _CODES.get(error.status_code, "REQUEST_REFUSED")
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_allowed_methods(request))
    return _answer(request, error.status_code, code, str(error.detail), None, headers)


def _allowed_methods(request: Request) -> list[str]:
    """The methods of an address: Starlette names those of the first route alone. Where GET is, HEAD is."""
    return [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": "GET" if method == "HEAD" else method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]


def unforeseen(request: Request, error: Exception) -> Response:
    """The answer to an error that is a mistake of ours."""
    _log.error("a request failed unexpectedly", path=request.url.path, exc_info=error)
    return _answer(request, 500, "INTERNAL_ERROR", _DEFECT)


def wrong_host(request: Request) -> Response:
    """The answer to a request for somebody else's name; it does not repeat it."""
    message = "the Host header names another server; PENSTOCK_ALLOWED_HOSTS says which names are this one's"
    return _answer(request, 400, "HOST_NOT_ALLOWED", message)


def _answer(
    request: Request,
    status: int,
    code: str,
    message: str,
    field: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    body = {
        "code": code,
        "message": message,
        "detail": message,
        "field": field,
        "request_id": request.scope.get("request_id"),
    }
    return JSONResponse(body, status, {**SAFE_HEADERS, **(headers or {})})
