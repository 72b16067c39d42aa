"""Connections, each closed when its client takes too much: heads too large or too slow, bodies that stall, too many.

uvicorn reads HTTP/1.1 by httptools, which bounds neither the size of a head nor the time it takes. Nothing here needs a
timer of its own: the server looks at all connections once a second (:class:`penstock.http.uvicorn_server.Server`).
docs/explanation/request-limits.md has the rules.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any

import orjson
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from penstock.http.bodies import is_user
from penstock.http.limits import network_of
from penstock.settings import Settings

_BODY_STEP = 16 * 1024
"""A body goes on when it has brought so many bytes more."""
_MAX_PIPELINED = 16
_STRANGERS_REST = 256 * 1024
_STRANGERS_SECONDS = 2.0
"""How much of a body is read behind its answer, and for how long, unless a user sends it: they see their answer."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection may take, and how many there may be."""

    head_bytes: int
    head_seconds: float
    stall_seconds: float
    connections: int
    per_address: int

    @classmethod
    def of(cls, settings: Settings) -> ConnectionLimits:
        """Those of the settings."""
        return cls(
            settings.max_head_bytes,
            settings.head_seconds,
            settings.stall_seconds,
            settings.max_connections,
            settings.connections_per_address,
        )


class Connections(ServerState):
    """All connections of a server, counted by address; those of proxies are many clients', and are not."""

    def __init__(
        self, limits: ConnectionLimits, *, is_proxy: Callable[[str], bool], count_refusal: Callable[[str], object]
    ) -> None:
        super().__init__()
        self.limits = limits
        self.count_refusal = count_refusal
        self._is_proxy = is_proxy
        self._by_network: Counter[str] = Counter()

    def count(self, host: str) -> str | None:
        """One more from this address; the answer is what it is counted by."""
        if self._is_proxy(host):
            return None
        network = network_of(host)
        self._by_network[network] += 1
        return network

    def uncount(self, network: str | None) -> None:
        """One of them less."""
        if network is not None:
            self._by_network[network] -= 1
            if not self._by_network[network]:
                del self._by_network[network]

    def is_over(self, network: str | None) -> bool:
        """Has this address more than its part?"""
        return network is not None and self._by_network[network] > self.limits.per_address

    def make_room_for(self, newcomer: Connection) -> bool:
        """Close the connection that has kept us waiting for longest, if one does; is there room now?"""
        if len(self.connections) <= self.limits.connections:
            return True
        candidates = [connection for connection in self._ours() if connection.waits_for_head]
        candidates.remove(newcomer)
        if candidates:
            min(candidates, key=lambda connection: connection.since).transport.close()
        return bool(candidates)

    def close_late(self, now: float) -> None:
        """Close the connections whose clients have had their time."""
        for connection in self._ours():
            connection.close_if_late(now)

    def _ours(self) -> list[Connection]:
        return [connection for connection in self.connections if isinstance(connection, Connection)]


class Phase(Enum):
    """What comes next from the client."""

    HEAD = auto()
    BODY = auto()
    NOTHING = auto()


class _HeadTooLarge(Exception):
    """Stops the parser; ``send_400_response`` says why."""


class Connection(HttpToolsProtocol):
    """One client's connection."""

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._state = server_state
        self._limits = server_state.limits
        self._network: str | None = None
        self.phase = Phase.HEAD
        self.since = self.loop.time()
        """When the client began to owe us what comes next, or last went on with it."""
        self._has_asked = False
        """Was there a request on this connection?"""
        self._head_bytes = 0
        self._unread_bytes = 0
        """What came and was neither a header nor a part of a body yet."""
        self._body_bytes = 0
        self._unsent_since: float | None = None

    @property
    def is_answered(self) -> bool:
        """Is nothing under way for the client?"""
        return not self._has_asked or self.cycle.response_complete

    @property
    def _is_users(self) -> bool:
        """Did a user send the last request?"""
        return is_user(self.cycle.scope)

    @property
    def waits_for_head(self) -> bool:
        """Is it the client's turn to ask something?"""
        return self.is_answered and self.phase is not Phase.BODY and not self.transport.is_closing()

    # What the transport says -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it; one too many is told so."""
        super().connection_made(transport)
        self._network = self._state.count(self.client[0]) if self.client else None
        if self._state.is_over(self._network):
            message = f"more than {self._limits.per_address} connections of one address are open"
            self._refuse(429, "TOO_MANY_CONNECTIONS", message)
        elif not self._state.make_room_for(self):
            message = f"all {self._limits.connections} connections are in use; retry in a moment"
            self._refuse(503, "TOO_MANY_CONNECTIONS", message)

    def connection_lost(self, exc: Exception | None) -> None:
        """It counts no more."""
        super().connection_lost(exc)
        self._state.uncount(self._network)
        self._network = None

    def data_received(self, data: bytes) -> None:
        """Read on, unless that is too much of a head."""
        if self.phase is Phase.NOTHING:
            self._expect(Phase.HEAD)
        self._unread_bytes += len(data)
        super().data_received(data)
        if self._unread_bytes > self._limits.head_bytes:
            self._refuse_head()

    def pause_writing(self) -> None:
        """The client does not read what it is sent."""
        super().pause_writing()
        self._unsent_since = self.loop.time()

    def resume_writing(self) -> None:
        """It does."""
        super().resume_writing()
        self._unsent_since = None

    # What the parser finds -------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A head; one more behind many that wait for their answers is not read."""
        if len(self.pipeline) >= _MAX_PIPELINED:
            raise _HeadTooLarge
        self.phase = Phase.HEAD
        self._head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Part of the first line."""
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; one behind the body is left out, because the request was decided without it."""
        if self.phase is Phase.HEAD:
            self._count_head(len(name) + len(value) + len(b": \r\n"))
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A request: somebody begins to answer it."""
        super().on_headers_complete()
        self._has_asked = True
        self._expect(Phase.BODY)

    def on_body(self, body: bytes) -> None:
        """Part of a body; what comes behind the answer is thrown away, and does not buy time."""
        self._unread_bytes = 0
        self._body_bytes += len(body)
        if not self.is_answered:
            if self._body_bytes >= _BODY_STEP:
                self._expect(Phase.BODY)
        elif self._body_bytes > _STRANGERS_REST and not self._is_users:
            self.flow.pause_reading()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A whole request: it is the server's turn."""
        super().on_message_complete()
        self._expect(Phase.NOTHING)

    def on_response_complete(self) -> None:
        """An answer is out; it may have come before the body."""
        if self.phase is Phase.BODY:
            self._expect(Phase.BODY)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP, or too much of it."""
        if self._head_bytes > self._limits.head_bytes or len(self.pipeline) >= _MAX_PIPELINED:
            self._refuse_head()
        else:
            self._refuse(400, "REQUEST_MALFORMED", "this is no request of HTTP/1.1")

    # What the clock says ---------------------------------------------------------------------------------------

    def close_if_late(self, now: float) -> None:
        """Close it if the client has had its time."""
        limits = self._limits
        if self.transport.is_closing() and self._unsent_since is None:
            self._unsent_since = now  # what is left to send may never be read
        if self._unsent_since is not None:
            if now - self._unsent_since > limits.stall_seconds:
                self.transport.abort()
        elif self.phase is Phase.HEAD and self.is_answered:
            if now - self.since > limits.head_seconds:
                self._close_late(f"the head of a request took more than {limits.head_seconds:g} s")
        elif self.phase is Phase.BODY:
            if self.is_answered:
                if now - self.since > (limits.stall_seconds if self._is_users else _STRANGERS_SECONDS):
                    self.transport.close()
            elif self.flow.read_paused:
                self.since = now  # it waits for us
            elif now - self.since > limits.stall_seconds:
                self._close_late(f"nothing more of the body came for {limits.stall_seconds:g} s")
        elif self.is_answered and self.timeout_keep_alive_task is None and now - self.since > limits.head_seconds:
            self.transport.close()  # uvicorn forgets its timer when the rest of a body came behind the answer

    def _close_late(self, message: str) -> None:
        """Say so to who has begun to ask something."""
        if self._head_bytes or self._unread_bytes:
            self._refuse(408, "REQUEST_TOO_SLOW", message)
        else:
            self.transport.close()

    # ------------------------------------------------------------------------------------------------------------

    def _expect(self, phase: Phase) -> None:
        self.phase = phase
        self.since = self.loop.time()
        self._unread_bytes = self._body_bytes = 0
        if phase is Phase.NOTHING:
            self._head_bytes = 0

    def _count_head(self, size: int) -> None:
        self._unread_bytes = 0
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes:
            raise _HeadTooLarge

    def _refuse_head(self) -> None:
        self._refuse(431, "HEAD_TOO_LARGE", f"the head of a request has more than {self._limits.head_bytes:,} bytes")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Say why, unless part of an answer is out, and close."""
        if self.transport.is_closing():
            return
        self._state.count_refusal(code)
        if self.is_answered or not self.cycle.response_started:
            self.transport.write(_answer(status, code, message))
        self.transport.close()


def _answer(status: int, code: str, message: str) -> bytes:
    """An answer to somebody whose request nobody has seen: the body is that of every problem."""
    body = orjson.dumps({"code": code, "message": message, "detail": message, "field": None, "request_id": None})
    headers = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "cache-control: no-store",
        "connection: close",
        *(["retry-after: 1"] if status in (429, 503) else []),
    ]
    return "\r\n".join([*headers, "\r\n"]).encode() + body
