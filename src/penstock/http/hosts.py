"""By which names a server may be asked: the ``Host`` of a request comes from outside, and links are made of it.

A page elsewhere can have its own name lead to this machine (DNS rebinding), and a browser would then take it for one of
our own pages. So ``penstock serve`` answers to the names that PENSTOCK_ALLOWED_HOSTS lists, and to this machine's own
(localhost). Where it lists none, also to what it was told to listen on and, when others can reach it, to addresses in
digits, which nobody's name server can redirect.
Health is answered under any name, because probes ask by whichever they have.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.http.errors import wrong_host

if TYPE_CHECKING:
    from penstock.http.service import Service

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?")
_PROBES = ("/healthz", "/readyz")


class Hosts:
    """Which names are ours.

    >>> Hosts(("jobs.example.org", ".example.net")).allow("a.example.net:8765")
    True
    >>> Hosts.of_listener("127.0.0.1").allow("evil.example"), Hosts.of_listener("0.0.0.0").allow("10.0.0.7:8765")
    (False, True)
    """

    def __init__(self, names: tuple[str, ...], *, any_address: bool = False) -> None:
        self._names = frozenset(name.lower() for name in names if not name.startswith("."))
        self._endings = tuple(name.lower() for name in names if name.startswith("."))
        self._any_address = any_address

    @classmethod
    def of_listener(cls, host: str) -> Hosts:
        """The default of a server that listens on ``host``."""
        return cls((host,), any_address=not is_loopback(host))

    def allow(self, header: str) -> bool:
        """Is this the ``Host`` of a request to us?"""
        match = _HOST.fullmatch(header.lower())
        if "*" in self._names:
            return True
        if match is None:
            return False
        name = match[1].strip("[]").rstrip(".")
        if name in self._names or name.endswith(self._endings) or is_loopback(name):
            return True
        return self._any_address and _is_address(name)


class AllowedHosts:
    """ASGI middleware that refuses requests to other names; ``service.hosts`` says which are ours, None all."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, unless it is for somebody else."""
        hosts = self._service.hosts
        if hosts is None or scope["type"] != "http" or _is_ours(hosts, scope):
            await self._app(scope, receive, send)
        else:
            await wrong_host(Request(scope))(scope, receive, send)


def _is_ours(hosts: Hosts, scope: Scope) -> bool:
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) == 1 and hosts.allow(values[0].decode("latin-1")):
        return True
    return scope["path"].removeprefix(scope.get("root_path", "")) in _PROBES


def is_loopback(host: str) -> bool:
    """Does only this machine reach it?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
