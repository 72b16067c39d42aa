"""One way to ask another host: one deadline, public addresses, and an answer that is bounded while it is read.

The deadline runs from the lookup of the name to the last byte of the answer, over all redirects: a host that drips
headers, redirects slowly or stops in the middle has no more time than one that does not answer at all.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urljoin, urlsplit

import httpcore2
import httpx2

from penstock.errors import AnswerTooLarge, AnswerTooLate, HostRefused, HostUnknown, RequestFailed, TooManyRedirects
from penstock.http_client.connections import ByteMeter, GuardedBackend, trusted_certificates

_ONWARD = (301, 302, 303, 307, 308)
_ENCODINGS = ("gzip", "deflate")
"""What is asked for. A host that sends another one, or one inside of another, is not read: each layer of a bomb makes
a thousand of one byte, and the layers in between are counted by nobody."""
_HEAD_BYTES = 160 * 1024
"""For each redirect: a head, and what has come of its body with it."""
_AROUND_DATA = 8
"""What frames data may be an eighth of it."""
_MAX_PIECES = 20_000
"""A page of a million pieces of one byte each takes a thousand times the processor time of the same page in one."""
_PIECES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How long an answer may take with all redirects, how large it may be once unpacked, and how far away."""

    seconds: float
    bytes: int
    redirects: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of an answer before its body comes: the address it came from, its status and its headers."""

    url: str
    status: int
    headers: Mapping[str, str]
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; the body is empty where nobody wanted it."""

    head: Head
    body: bytes


def same_origin(url: str, location: str) -> str:
    """Where a redirect leads to, which has to be the same host: keys are sent with the request."""
    onward = urljoin(url, location)
    if urlsplit(onward)[:2] != urlsplit(url)[:2]:
        raise HostRefused(f"it leads on to another host, {urlsplit(onward).netloc[:100]!r}")
    return onward


def configured_host(url: str) -> str:
    """The host of an address that the operator has configured, as ``allowed_hosts`` has it: with its port.

    >>> configured_host("http://models.example/v1")
    'models.example:80'
    """
    parts = httpx2.URL(url)
    return f"{parts.raw_host.decode('ascii')}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


class HttpClient:
    """Asks public hosts, and those of ``allowed_hosts`` (``host`` or ``host:port``), wherever these are.

    A client is for one purpose: what is allowed for an operator's own service is allowed for that client alone. It
    keeps its connections for the next question and belongs to the event loop that it was made on.
    """

    def __init__(
        self,
        *,
        allowed_hosts: Collection[str] = (),
        headers: Mapping[str, str] | None = None,
        max_connections: int = 100,
    ) -> None:
        self._meter = ByteMeter()
        pool = httpcore2.AsyncConnectionPool(
            ssl_context=trusted_certificates(), http2=True, max_connections=max_connections,
            max_keepalive_connections=20, keepalive_expiry=5.0,
            network_backend=GuardedBackend(allowed_hosts, self._meter),
        )  # fmt: skip
        self._client = httpx2.AsyncClient(
            transport=_Transport(pool), timeout=None, trust_env=False, follow_redirects=False,
            headers={**(headers or {}), "Accept-Encoding": ", ".join(_ENCODINGS)},
        )  # fmt: skip

    async def ask(
        self,
        method: str,
        url: str,
        limits: AnswerLimits,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        wants_body: Callable[[Head], bool] = lambda _: True,
        onward: Callable[[str, str], str] = same_origin,
    ) -> Answer:
        """What a host answers.

        ``wants_body`` is asked when the head has come; what it raises ends the request. ``onward`` makes an address of
        where a redirect leads to, or refuses it. Without redirects in the limits, a redirect is an answer like others.
        """
        self._meter.begin()
        try:
            async with asyncio.timeout(limits.seconds):
                for _ in range(limits.redirects + 1):
                    self._meter.allow(_HEAD_BYTES)
                    async with self._send(method, url, content, headers) as response:
                        location = response.headers.get("location") if response.status_code in _ONWARD else None
                        if location is None or not limits.redirects:
                            return await self._read(url, response, limits, wants_body)
                    url = onward(url, location)
        except TimeoutError as error:
            raise AnswerTooLate(f"{limits.seconds:g} s are allowed") from error
        finally:
            self._meter.end()
        raise TooManyRedirects(f"more than {limits.redirects} times")

    @asynccontextmanager
    async def _send(
        self, method: str, url: str, content: bytes | None, headers: Mapping[str, str] | None
    ) -> AsyncIterator[httpx2.Response]:
        """An answer whose body is still to come; errors on the way become ours."""
        try:
            async with self._client.stream(method, url, content=content, headers=headers) as response:
                yield response
        except (httpx2.TimeoutException, httpcore2.TimeoutException) as error:
            raise AnswerTooLate("it did not connect in time") from error
        except httpx2.InvalidURL as error:
            raise HostUnknown(str(error)) from error
        except (
            httpx2.HTTPError, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ConnectionNotAvailable,
            httpcore2.UnsupportedProtocol, ssl.SSLError,
        ) as error:  # fmt: skip
            raise RequestFailed(str(error) or type(error).__name__) from error

    async def _read(
        self, url: str, response: httpx2.Response, limits: AnswerLimits, wants_body: Callable[[Head], bool]
    ) -> Answer:
        head = Head(url, response.status_code, response.headers, response.charset_encoding)
        if not wants_body(head):
            return Answer(head, b"")
        encodings = [text.strip().lower() for text in response.headers.get_list("content-encoding", split_commas=True)]
        if encodings not in ([], ["identity"], *([encoding] for encoding in _ENCODINGS)):
            raise RequestFailed(f"its answer is packed as {', '.join(encodings)[:100]!r}, which nobody has asked for")
        self._meter.allow(limits.bytes + limits.bytes // _AROUND_DATA)
        body: list[bytes] = []
        room = limits.bytes
        async with aclosing(response.aiter_bytes()) as parts:
            async for part in parts:
                room -= len(part)
                if room < 0:
                    raise AnswerTooLarge(f"{limits.bytes:,} bytes are allowed")
                body.append(part)
        return Answer(head, b"".join(body))

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class _Transport(httpx2.AsyncBaseTransport):
    """httpx2 over connections of our own making."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )  # fmt: skip
        answer = await self._pool.handle_async_request(outgoing)
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Stream(answer), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        """Close its connections."""
        await self._pool.aclose()


class _Stream(httpx2.AsyncByteStream):
    """A body that is read as it comes, in a bounded number of pieces; others have their turn between them."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async with aclosing(self._answer.aiter_stream()) as pieces:
            async for piece in pieces:
                count += 1
                if count > _MAX_PIECES:
                    raise AnswerTooLarge(f"it comes in more than {_MAX_PIECES:,} pieces")
                if count % _PIECES_AT_ONCE == 0:
                    await asyncio.sleep(0)
                yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()
