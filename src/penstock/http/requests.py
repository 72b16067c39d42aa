"""Every request has an id: the caller's own or a new one, in the answer's header, in errors and in each log line.

And every answer has the headers that keep it safe, unless it says otherwise. What nobody foresaw is answered here,
where the id is known to the log and the status to the figures.
"""

from __future__ import annotations

import re
import time
from typing import Any

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils.compat import uuid7

from penstock.http.errors import unforeseen
from penstock.http.safe_headers import with_defaults
from penstock.http.system.metrics import Metrics

_HEADER = b"x-request-id"
_GOOD = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_CLIENT_CLOSED_REQUEST = 499
"""The status of a request whose client went away before the answer: nginx has made it the usual one."""
_log = structlog.get_logger("penstock.http")


class RequestIds:
    """ASGI middleware that names requests, times them and writes a line about each."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        header = next((value for name, value in scope["headers"] if name == _HEADER), b"")
        request_id = header.decode() if _GOOD.fullmatch(header) else uuid7().hex
        scope["request_id"] = request_id
        answer: dict[str, Any] = {}

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer["status"] = message["status"]
                message["headers"] = [*with_defaults(message["headers"]), (_HEADER, request_id.encode())]
            await send(message)

        began_at = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_named)
            except ClientDisconnect:
                answer.setdefault("status", _CLIENT_CLOSED_REQUEST)
            except Exception as error:  # noqa: BLE001 - answered and logged, whatever it is
                response = unforeseen(Request(scope), error)
                if "status" not in answer:
                    await response(scope, receive, send_named)
                # An answer that has begun is left in its middle, and the server cuts the connection.
            finally:
                seconds = time.perf_counter() - began_at
                status = answer.get("status", 0)
                _log.info(
                    "request",
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    milliseconds=round(seconds * 1000.0, 1),
                )
                # The route's own words, not the address: there must not be a figure for every job.
                route = getattr(scope.get("route"), "path", "none")
                self._metrics.requests.labels(scope["method"], route, status).observe(seconds)
