"""Bodies of requests: how large one may be, and how much of all of them is held in memory at a time.

An address takes as much JSON as ``PENSTOCK_MAX_JSON_BYTES`` says, or what ``limit_body`` says for it. What was
announced is looked at before the first byte is taken; what comes is counted all the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CALLER = "penstock.caller"
_USER = "user "
_SHARE = 4
"""A caller may hold this part of the memory for bodies: one in so many."""
_SMALL_JSON = 64 * 1024
_MARK = "body_limit"
_MAX_FILES = 5
_MAX_FIELDS = 20
_MAX_TEXT_BYTES = 64 * 1024


def note_caller(scope: Scope, user: str | None, network: str) -> None:
    """Keep with a request whose it is: a user's, or that of a guest at an address."""
    scope[_CALLER] = network if user is None else f"{_USER}{user}"


def is_user(scope: Mapping[str, Any]) -> bool:
    """Is it known to be a user's request?"""
    return str(scope.get(_CALLER, "")).startswith(_USER)


Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class BodySize:
    """The largest body of an address."""

    max_bytes: int
    is_spooled: bool = False
    """Does it go to the disk as it comes?"""
    max_files: int = _MAX_FILES


def limit_body(
    max_bytes: int, *, is_spooled: bool = False, max_files: int = _MAX_FILES
) -> Callable[[Endpoint], Endpoint]:
    """Let an address take bodies of up to so many bytes and files; stands right above the function.

    Files are ``is_spooled``: they go to the disk, and are not counted as memory.

    >>> @limit_body(5_000_000)
    ... def keep_page() -> None: ...
    """

    def mark(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)[_MARK] = BodySize(max_bytes, is_spooled, max_files)
        return endpoint

    return mark


class BodyRefused(HTTPException):
    """A body that is taken no further: an ``HTTPException``, because FastAPI calls every other error a broken body."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, message, headers)
        self.code = code


class BodyMemory:
    """The memory that bodies of all requests may take together, with a share for each caller.

    >>> memory = BodyMemory(1_000)
    >>> memory.take("ada", 250)
    >>> memory.take("ada", 1)
    Traceback (most recent call last):
    ...
    penstock.http.bodies.BodyRefused: 429: more than 250 bytes of your requests' bodies are under way; retry in a moment
    >>> memory.give_back("ada", 250)
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._share = max_bytes // _SHARE
        self._held_by: Counter[str] = Counter()
        self.total_bytes = 0
        """What is held by everybody."""

    def take(self, caller: str, size: int) -> None:
        """So many bytes more; :class:`BodyRefused` when that is too much, and then nothing is taken."""
        if self._held_by[caller] + size > self._share:
            raise _under_way(429, f"more than {self._share:,} bytes of your requests' bodies are under way")
        if self.total_bytes + size > self._max_bytes:
            raise _under_way(503, f"more than {self._max_bytes:,} bytes of bodies are under way")
        self._held_by[caller] += size
        self.total_bytes += size

    def give_back(self, caller: str, size: int) -> None:
        """So many bytes are not held any more."""
        self.total_bytes -= size
        self._held_by[caller] -= size
        if not self._held_by[caller]:
            del self._held_by[caller]


class BodyLimit:
    """ASGI middleware that hands on no more of a body than its address takes."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, memory: BodyMemory) -> None:
        self._app = app
        self._default = BodySize(max_bytes)
        self._memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive, self._memory, self._default)
        try:
            await self._app(scope, body.receive, send)
        finally:
            body.close()


class _Body:
    """The body of one request, as far as it was taken."""

    __slots__ = ("_byte_count", "_caller", "_default", "_memory", "_memory_bytes", "_receive", "_scope", "_size")

    def __init__(self, scope: Scope, receive: Receive, memory: BodyMemory, default: BodySize) -> None:
        self._scope = scope
        self._receive = receive
        self._memory = memory
        self._default = default
        self._size: BodySize | None = None
        self._caller = ""
        self._byte_count = 0
        self._memory_bytes = 0

    async def receive(self) -> Message:
        """The next part of it."""
        if self._size is None:
            # By now the address is known, and who asks.
            self._size = getattr(self._scope.get("endpoint"), _MARK, self._default)
            self._caller = self._scope.get(_CALLER, "")
            self._require_room(self._size, _announced_bytes(self._scope))
        message = await self._receive()
        if content := message.get("body"):
            self._byte_count += len(content)
            self._require_room(self._size, self._byte_count)
            if not self._size.is_spooled:
                self._memory.take(self._caller, len(content))
                self._memory_bytes += len(content)
        return message

    def close(self) -> None:
        """The request is over, and nobody holds its body any more."""
        if self._memory_bytes:
            self._memory.give_back(self._caller, self._memory_bytes)

    def _require_room(self, size: BodySize, count: int) -> None:
        if count > size.max_bytes:
            raise BodyRefused(413, "BODY_TOO_LARGE", f"the body is larger than the {size.max_bytes:,} bytes allowed")


class BodyRequest(Request):
    """A request whose JSON is read in a thread when it is large, and whose files hardly take memory."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        size: BodySize | None = getattr(scope.get("endpoint"), _MARK, None)
        self._max_files = _MAX_FILES if size is None else size.max_files

    async def json(self) -> Any:
        """The body's value. One large body at a time: what a few bytes of JSON become may take much memory."""
        body = await self.body()
        if len(body) <= _SMALL_JSON:
            return json.loads(body)
        limiter: CapacityLimiter = self.app.state.penstock.large_json
        return await to_thread.run_sync(json.loads, body, limiter=limiter)

    async def _get_form(self, **_bounds: float) -> FormData:
        """The body's parts, within our own bounds; FastAPI cannot be told any."""
        if self._form is None and self.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            parser = _SmallSpool(
                self.headers,
                self.stream(),
                max_files=self._max_files,
                max_fields=_MAX_FIELDS,
                max_part_size=_MAX_TEXT_BYTES,
            )
            try:
                self._form = await parser.parse()
            except MultiPartException as error:
                raise HTTPException(400, error.message) from error
        return await super()._get_form(max_fields=_MAX_FIELDS, max_part_size=_MAX_TEXT_BYTES)


class _SmallSpool(MultiPartParser):
    """Starlette holds a megabyte of each file: with a thousand files in one body that is a gigabyte."""

    spool_max_size = 64 * 1024


def _announced_bytes(scope: Scope) -> int:
    text = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(text[:19]) if text.isdigit() else 0  # no limit has so many digits


def _under_way(status: int, message: str) -> BodyRefused:
    return BodyRefused(status, "BODIES_UNDER_WAY", f"{message}; retry in a moment", {"Retry-After": "1"})
