"""Serving with uvicorn: with limits on connections, and event streams that are closed as soon as it has to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from penstock.errors import ConfigurationError
from penstock.http.access import is_within
from penstock.http.connections import Connection, ConnectionLimits, Connections
from penstock.http.hosts import Hosts, is_loopback
from penstock.http.service import Service
from penstock.settings import Settings

_TICKS_A_SECOND = 10
_LONGEST_PAUSE_SECONDS = 5.0
_OWN_ADDRESSES = frozenset({"127.0.0.1", "::1"})
"""Where a proxy on this machine comes from."""


class Server(uvicorn.Server):
    """A server that says where it serves, does not wait for event streams, and ends well when it is told to."""

    def __init__(
        self, api: FastAPI, *, host: str, port: int, grace: float, on_start: Callable[[str], None] | None = None
    ) -> None:
        service: Service = api.state.penstock
        if service.hosts is None:
            service.hosts = Hosts.of_listener(host)
        proxies = [str(network) for network in service.app.settings.trusted_proxies]
        super().__init__(
            uvicorn.Config(
                api, host=host, port=port, log_config=None, access_log=False, server_header=False,
                timeout_graceful_shutdown=int(grace) + 1, http=Connection, ws="none",
                proxy_headers=bool(proxies), forwarded_allow_ips=proxies,
            )
        )  # fmt: skip
        self._change_feed = service.change_feed
        self._connections = Connections(
            ConnectionLimits.of(service.app.settings),
            is_proxy=partial(_is_proxy, service.app.settings),
            count_refusal=lambda code: service.metrics.refused_connections.labels(code).inc(),
        )
        self.server_state = self._connections
        self._looked_at = 0.0
        self._on_start = on_start

    @property
    def address(self) -> str:
        """Where it serves."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        if self.started and self._on_start is not None:
            self._on_start(self.address)

    async def on_tick(self, counter: int) -> bool:
        """Once a second, close the connections whose clients are late; unless it was this program that did nothing."""
        if counter % _TICKS_A_SECOND == 0:
            now = asyncio.get_running_loop().time()
            if now - self._looked_at < _LONGEST_PAUSE_SECONDS:
                self._connections.close_late(now)
            self._looked_at = now
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal stops the server, and that is no failure; the second ends the program where it stands."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Streams end first: they would hold the server until its grace is over."""
        if self.should_exit and frame is not None:
            os._exit(128 + sig)
        if self.servers:
            self.servers[0].get_loop().call_soon_threadsafe(self._change_feed.close)
        self.should_exit = True


def _is_proxy(settings: Settings, host: str) -> bool:
    """May this address speak for many clients?"""
    return host in _OWN_ADDRESSES or is_within(host, settings.trusted_proxies)


def refuse_open_door(settings: Settings, host: str) -> None:
    """A server that others can reach needs a secret somebody has chosen, or the keys of an identity provider."""
    if settings.jwt_secret is None and settings.jwks_url is None and not is_loopback(host):
        raise ConfigurationError(
            f"{host} can be reached by others: set PENSTOCK_JWT_SECRET (32 characters or more) or PENSTOCK_JWKS_URL",
            code="JWT_SECRET_MISSING",
        )
