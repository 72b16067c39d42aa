"""Fetching a page: within bounds of time, size, type and redirects, from public hosts alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urldefrag, urljoin

from penstock import Permanent, Retryable
from penstock.errors import (
    AnswerTooLarge,
    AnswerTooLate,
    HostRefused,
    HostUnknown,
    InvalidInput,
    RequestFailed,
    TooManyRedirects,
)
from penstock.http_client import AnswerLimits, Head, HttpClient, read_retry_after
from penstock_apps.recipes.addresses import normalize_url
from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.parsing.challenges import is_announced
from penstock_apps.recipes.parsing.limits import FetchLimits
from penstock_apps.recipes.parsing.page import Page

USER_AGENT = "Penstock/0.1 (recipe reader; fetches a page once when a person asks for it)"
_TYPES = ("text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml")
_NOT_FOUND = (404, 410)
_MAYBE_CHALLENGE = 503
"""What is said to programs by sites that are busy, and by those that show a browser a challenge."""
_HEADERS = {"User-Agent": USER_AGENT, "Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.1"}
_FAILURES: tuple[tuple[type[RequestFailed], PageFailure], ...] = (
    (AnswerTooLate, PageFailure.TIMEOUT),
    (AnswerTooLarge, PageFailure.TOO_LARGE),
    (HostRefused, PageFailure.HOST_REFUSED),
    (HostUnknown, PageFailure.HOST_UNKNOWN),
    (TooManyRedirects, PageFailure.REDIRECTS),
    (RequestFailed, PageFailure.FAILED),
)


async def fetch(address: str, limits: FetchLimits) -> Page:
    """The page an address leads to, asked for as it is written; so are those that it leads on to.

    A site that is busy may have sent a challenge instead: which of them it is, is said by who reads the page.
    """
    answer_limits = AnswerLimits(limits.seconds, limits.bytes, limits.redirects)
    with _failing_as_pages_do():
        async with HttpClient(allowed_hosts=limits.allowed_hosts, headers=_HEADERS) as client:
            answer = await client.ask(
                "GET", urldefrag(address).url, answer_limits, wants_body=_wants_body, onward=_onward
            )
    head = answer.head
    return Page(head.url, answer.body, head.charset, failure=_failure_of(head))


@contextmanager
def _failing_as_pages_do() -> Iterator[None]:
    try:
        yield
    except RequestFailed as error:
        failure = next(failure for kind, failure in _FAILURES if isinstance(error, kind))
        raise failure.error(error.message) from error


def _wants_body(head: Head) -> bool:
    """A page is wanted, and what may be a challenge; everything else is said by its head."""
    failure = _failure_of(head)
    if failure is not None and head.status != _MAYBE_CHALLENGE:
        raise failure
    return True


def _onward(address: str, location: str) -> str:
    try:
        target = urldefrag(urljoin(address, location)).url
        normalize_url(target)  # which refuses what is no address of a page
    except (InvalidInput, ValueError) as error:
        raise PageFailure.HOST_REFUSED.error(f"it leads on to {location[:200]!r}") from error
    return target


def _failure_of(head: Head) -> Permanent | Retryable | None:
    """Why an answer is no page, by its status and headers; None where it is."""
    status = head.status
    detail = f"it answers {status}"
    if is_announced(head.headers):
        return PageFailure.CHALLENGE.error(detail)
    if status in _NOT_FOUND:
        return PageFailure.NOT_FOUND.error(f"the site answers {status}")
    if status == 429:
        return PageFailure.THROTTLED.error(detail, after=read_retry_after(head.headers.get("retry-after")))
    if status >= 500:
        return PageFailure.BUSY.error(detail, after=read_retry_after(head.headers.get("retry-after")))
    if status == 408:
        return PageFailure.TIMEOUT.error("the site answers 408")
    if status != 200:
        return PageFailure.FORBIDDEN.error(detail)
    kind = head.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    return None if kind in _TYPES else PageFailure.NOT_HTML.error(f"its type is {kind[:100]}")
