"""Fetching a page: within bounds of time, size, type and redirects, from public hosts alone."""

from __future__ import annotations

import functools
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urldefrag, urljoin

import httpcore2
import httpx2

from penstock import Permanent, Retryable
from penstock.errors import InvalidInput
from penstock_apps.recipes.addresses import normalize_url
from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.parsing.challenges import is_announced, is_challenge
from penstock_apps.recipes.parsing.hosts import PublicHosts
from penstock_apps.recipes.parsing.limits import FetchLimits
from penstock_apps.recipes.parsing.texts import decode_page

USER_AGENT = "Penstock/0.1 (recipe reader; fetches a page once when a person asks for it)"
_TYPES = ("text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml")
_ONWARD = (301, 302, 303, 307, 308)
_NOT_FOUND = (404, 410)
_MAYBE_CHALLENGE = 503
"""What is said to programs by sites that are busy, and by those that show a browser a challenge."""
_LONGEST_WAIT = 3600.0


@dataclass(frozen=True, slots=True)
class Page:
    """What came back, and from where in the end."""

    address: str
    text: str


def fetch(address: str, limits: FetchLimits) -> Page:
    """The page an address leads to, asked for as it is written; so are those that it leads on to."""
    address = urldefrag(address).url
    deadline = time.monotonic() + limits.seconds
    with _client(limits) as client:
        for _ in range(limits.redirects + 1):
            with _get(client, address) as answer:
                if answer.status_code in _ONWARD and "location" in answer.headers:
                    address = _onward(address, answer.headers["location"])
                    continue
                failure = _failure_of(answer)
                if failure is not None and answer.status_code != _MAYBE_CHALLENGE:
                    raise failure
                text = decode_page(_body(answer, limits, deadline), answer.charset_encoding)
                if is_challenge(text):
                    raise PageFailure.CHALLENGE.error(f"it answers {answer.status_code}")
                if failure is not None:
                    raise failure
                return Page(address, text)
    raise PageFailure.REDIRECTS.error(f"more than {limits.redirects} times")


@functools.cache
def trusted_certificates() -> ssl.SSLContext:
    """Whom to trust, read once: it takes 40 ms of processor time, more than parsing a page."""
    return ssl.create_default_context()


class _Transport(httpx2.BaseTransport):
    """httpx2 over connections of our own making."""

    def __init__(self, allowed_hosts: tuple[str, ...]) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=trusted_certificates(), http2=True, network_backend=PublicHosts(allowed_hosts)
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            extensions=request.extensions,
        )  # fmt: skip
        answer = self._pool.handle_request(outgoing)
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Stream(answer), extensions=answer.extensions
        )

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()


class _Stream(httpx2.SyncByteStream):
    """A body that is read as it comes."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def _client(limits: FetchLimits) -> httpx2.Client:
    return httpx2.Client(
        transport=_Transport(limits.allowed_hosts),
        timeout=httpx2.Timeout(limits.seconds, connect=min(5.0, limits.seconds)),
        headers={"User-Agent": USER_AGENT, "Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.1"},
        trust_env=False,
    )


@contextmanager
def _get(client: httpx2.Client, address: str) -> Iterator[httpx2.Response]:
    """An answer whose body is still to come; errors on the way become ours."""
    try:
        with client.stream("GET", address) as answer:
            yield answer
    except (httpx2.TimeoutException, httpcore2.TimeoutException) as error:
        raise PageFailure.TIMEOUT.error() from error
    except httpx2.InvalidURL as error:
        raise PageFailure.HOST_UNKNOWN.error(str(error)) from error
    except (httpx2.HTTPError, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise PageFailure.FAILED.error(str(error) or type(error).__name__) from error
    except (httpcore2.ConnectionNotAvailable, httpcore2.UnsupportedProtocol, ssl.SSLError) as error:
        raise PageFailure.FAILED.error(str(error)) from error


def _onward(address: str, location: str) -> str:
    try:
        target = urldefrag(urljoin(address, location)).url
        normalize_url(target)  # which refuses what is no address of a page
    except (InvalidInput, ValueError) as error:
        raise PageFailure.HOST_REFUSED.error(f"it leads on to {location[:200]!r}") from error
    return target


def _failure_of(answer: httpx2.Response) -> Permanent | Retryable | None:
    """Why an answer is no page, by its status and headers; None where it is."""
    status = answer.status_code
    detail = f"it answers {status}"
    if is_announced(answer.headers):
        return PageFailure.CHALLENGE.error(detail)
    if status in _NOT_FOUND:
        return PageFailure.NOT_FOUND.error(f"the site answers {status}")
    if status == 429:
        return PageFailure.THROTTLED.error(detail, after=_retry_after(answer.headers.get("retry-after")))
    if status >= 500:
        return PageFailure.BUSY.error(detail, after=_retry_after(answer.headers.get("retry-after")))
    if status == 408:
        return PageFailure.TIMEOUT.error("the site answers 408")
    if status != 200:
        return PageFailure.FORBIDDEN.error(detail)
    kind = answer.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    return None if kind in _TYPES else PageFailure.NOT_HTML.error(f"its type is {kind[:100]}")


def _body(answer: httpx2.Response, limits: FetchLimits, deadline: float) -> bytes:
    parts = []
    size = 0
    for part in answer.iter_bytes():
        size += len(part)
        if size > limits.bytes:
            raise PageFailure.TOO_LARGE.error(f"{limits.bytes:,} bytes are allowed")
        if time.monotonic() > deadline:
            raise PageFailure.TIMEOUT.error(f"{limits.seconds:g} s are allowed")
        parts.append(part)
    return b"".join(parts)


def _retry_after(text: str | None) -> float | None:
    """Seconds, however the site writes them; not longer than a person would wait."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return min(float(text.strip()), _LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max((until - datetime.now(UTC)).total_seconds(), 0.0), _LONGEST_WAIT)
