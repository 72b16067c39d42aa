"""Connections of our own making: to addresses that were looked at, and with a count of what comes through them.

A name is looked up here, once, and the connection is made to an address that was judged: a name that answers
differently the second time does not get around it. Every redirect to another host is a new connection, and comes
through here again. Nothing here asks the environment for a proxy, which would look names up itself.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import ssl
import threading
from collections.abc import Collection, Iterable

import httpcore2

from penstock.errors import AnswerTooLarge, HostRefused, HostUnknown, RequestFailed
from penstock.http_client.addresses import is_public

_MAX_LOOKUPS = 128
_MAX_ADDRESSES = 4
_CONNECT_SECONDS = 5.0
_BRACKETS = {ord("["): None, ord("]"): None}
"""Which are around the numbers of IPv6 in some places and not in others."""
_lookups = threading.BoundedSemaphore(_MAX_LOOKUPS)


@functools.cache
def trusted_certificates() -> ssl.SSLContext:
    """Whom to trust, read once: it takes 40 ms of processor time, more than parsing a page."""
    return ssl.create_default_context()


class ByteMeter:
    """How much may still be received: headers, answers that are none yet and what is around the data count, too.

    Requests that share a connection cannot be told apart there, so each adds what it is allowed as it goes on, and what
    comes for any of them is taken off. Once nobody asks, what is left is forgotten.
    """

    def __init__(self) -> None:
        self._requests = 0
        self._allowed_bytes = 0

    def begin(self) -> None:
        """A request begins; nothing may be received for it yet."""
        if self._requests == 0:
            self._allowed_bytes = 0
        self._requests += 1

    def allow(self, more: int) -> None:
        """So much more may be received."""
        self._allowed_bytes += more

    def end(self) -> None:
        """A request is over."""
        self._requests -= 1

    def count(self, size: int) -> None:
        """Something was received; more than is allowed ends the connection."""
        self._allowed_bytes -= size
        if self._allowed_bytes < 0:
            raise AnswerTooLarge("more is sent than its answer may have")


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to public addresses; ``allowed_hosts`` names others, as ``host`` or ``host:port``."""

    def __init__(self, allowed_hosts: Collection[str], meter: ByteMeter) -> None:
        self._allowed_hosts = frozenset(host.lower().translate(_BRACKETS) for host in allowed_hosts)
        self._meter = meter
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface is httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to an address that was looked at, not to a name."""
        host = host.lower().translate(_BRACKETS)
        addresses = await look_up(host, port)
        names = {host, f"{host}:{port}"}
        # A single one that is not public is enough: a name that answers with both hopes to be tried until it works.
        if self._allowed_hosts.isdisjoint(names) and not all(map(_is_public_text, addresses)):
            raise HostRefused(host)
        error: Exception | None = None
        for address in addresses[:_MAX_ADDRESSES]:
            try:
                stream = await self._backend.connect_tcp(address, port, _CONNECT_SECONDS, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as connect_error:
                error = connect_error
            else:
                return _MeteredStream(stream, self._meter)
        raise error or HostUnknown(host)


class _MeteredStream(httpcore2.AsyncNetworkStream):
    """A connection that says how much came through it."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, meter: ByteMeter) -> None:
        self._stream = stream
        self._meter = meter

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        data = await self._stream.read(max_bytes, timeout)
        self._meter.count(len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        return _MeteredStream(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._meter)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a name.

    In a thread of its own: a name server that does not answer would keep the few that everybody shares. The thread ends
    when the resolver gives up, also where nobody waits for it any more.
    """
    if not _lookups.acquire(blocking=False):
        raise RequestFailed(f"the name {host} cannot be looked up just now: {_MAX_LOOKUPS} others are")
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()
    thread = threading.Thread(target=_resolve, args=(host, port, loop, answer), name="penstock-lookup", daemon=True)
    try:
        thread.start()
    except BaseException:
        _lookups.release()
        raise
    return await answer


def _resolve(host: str, port: int, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[str]]) -> None:
    addresses: list[str] = []
    error: Exception | None = None
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    except socket.gaierror as lookup_error:
        is_temporary = lookup_error.errno == socket.EAI_AGAIN
        error = RequestFailed(f"the name {host} cannot be looked up just now") if is_temporary else HostUnknown(host)
    except (UnicodeError, ValueError, OverflowError):
        error = HostUnknown(host)
    except OSError as lookup_error:
        error = RequestFailed(f"the name {host} cannot be looked up: {lookup_error}")
    finally:
        _lookups.release()

    def tell() -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(addresses)
        else:
            answer.set_exception(error)

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the loop has ended, and nobody waits


def _is_public_text(address: str) -> bool:
    return is_public(ipaddress.ip_address(address.partition("%")[0]))
