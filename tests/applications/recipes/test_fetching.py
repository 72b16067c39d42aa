"""Fetching pages of strangers: bounded, and never from inside the house."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import anyio
import pytest

from penstock import Permanent, Retryable
from penstock.errors import HandlerError
from penstock_apps.recipes.parsing.fetching import USER_AGENT
from penstock_apps.recipes.parsing.limits import FetchLimits
from tests.applications.recipes.readers import fetch
from tests.applications.recipes.site import Site, open_site


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as one:
        yield one


def limits(site: Site, **changes: Any) -> FetchLimits:
    """Bounds that trust the test's own site."""
    given: dict[str, Any] = {"seconds": 5.0, "allowed_hosts": (site.host,)} | changes
    return FetchLimits(**given)


def refused(url: str, given: FetchLimits) -> HandlerError:
    """Why a page was not fetched."""
    with pytest.raises(HandlerError) as error:
        fetch(url, given)
    return error.value


def test_a_page_comes_with_the_address_it_was_found_at(site: Site) -> None:
    site.page("/new", "<p>süß</p>".encode("latin-1"), Content_Type="text/html; charset=iso-8859-1")
    site.page("/old", "", status=301, Location="/new#part")
    page = fetch(site.url("/old"), limits(site))
    assert (page.address, page.text) == (site.url("/new"), "<p>süß</p>")
    assert site.headers[0]["User-Agent"] == USER_AGENT


def test_a_page_is_asked_for_as_its_address_is_written(site: Site) -> None:
    """A site may know a page with a slash at its end alone, as it may know its escapes in small letters alone."""
    for path in ("/soup/", "/s%c3%bcppe//", "/a%2Db?q=%7e"):
        site.page(path, path)
        page = fetch(f"{site.url(path)}#top", limits(site))
        assert (page.text, page.address) == (path, site.url(path))


def test_a_site_may_lead_on_to_the_same_page_with_a_slash(site: Site) -> None:
    site.page("/soup", "", status=301, Location="/soup/")
    site.page("/soup/", "hot")
    page = fetch(site.url("/soup"), limits(site))
    assert (page.address, page.text) == (site.url("/soup/"), "hot")
    assert (site.asked["/soup"], site.asked["/soup/"]) == (1, 1)


@pytest.mark.parametrize(
    ("status", "headers", "text"),
    [
        (200, {}, "<html><head><title>Just a moment...</title></head><body></body></html>"),
        (503, {}, "<html><body><script>window._cf_chl_opt={cType:'managed'}</script></body></html>"),
        (403, {"Cf_Mitigated": "challenge"}, ""),
        (202, {"X_Amzn_Waf_Action": "challenge"}, ""),
        (200, {}, "<script>var dd={'host':'geo.captcha-delivery.com/'}</script>"),
    ],
)
def test_a_site_that_wants_to_see_a_browser_first_is_told_apart(
    site: Site, status: int, headers: dict[str, str], text: str
) -> None:
    error = refused(site.page("/soup", text, status=status, **headers), limits(site))
    assert (type(error), error.code) == (Permanent, "PAGE_CHALLENGE")


def test_a_site_that_wants_more_patience_than_a_person_has_is_not_waited_for(site: Site) -> None:
    error = refused(site.page("/soup", "", status=429, Retry_After="61"), limits(site))
    assert (type(error), error.code) == (Permanent, "PAGE_THROTTLED")


def test_a_host_that_has_no_name_is_unknown_for_good(site: Site) -> None:
    error = refused("http://\u2615.example/", limits(site))
    assert (type(error), error.code) == (Permanent, "HOST_UNKNOWN")


def test_a_compressed_page_is_read_and_a_bomb_is_too_large(site: Site) -> None:
    site.page("/small", gzip.compress(b"<p>soup</p>"), Content_Encoding="gzip")
    assert fetch(site.url("/small"), limits(site)).text == "<p>soup</p>"
    site.page("/bomb", gzip.compress(b"0" * 20_000_000), Content_Encoding="gzip")
    error = refused(site.url("/bomb"), limits(site, bytes=1_000_000))
    assert (type(error), error.code) == (Permanent, "PAGE_TOO_LARGE")


@pytest.mark.parametrize(
    ("status", "headers", "kind", "code"),
    [
        (404, {}, Permanent, "PAGE_NOT_FOUND"),
        (410, {}, Permanent, "PAGE_NOT_FOUND"),
        (401, {}, Permanent, "PAGE_FORBIDDEN"),
        (403, {}, Permanent, "PAGE_FORBIDDEN"),
        (204, {}, Permanent, "PAGE_FORBIDDEN"),
        (429, {"Retry_After": "7"}, Retryable, "PAGE_THROTTLED"),
        (500, {}, Retryable, "PAGE_BUSY"),
        (503, {"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, Retryable, "PAGE_BUSY"),
        (408, {}, Retryable, "FETCH_TIMEOUT"),
        (200, {"Content_Type": "application/pdf"}, Permanent, "PAGE_NOT_HTML"),
        (301, {"Location": "ftp://example.com/"}, Permanent, "HOST_REFUSED"),
        (301, {"Location": "http://[broken"}, Permanent, "HOST_REFUSED"),
    ],
)  # fmt: skip
def test_each_answer_has_its_code(
    site: Site, status: int, headers: dict[str, str], kind: type[HandlerError], code: str
) -> None:
    error = refused(site.page("/page", "", status=status, **headers), limits(site))
    assert (type(error), error.code) == (kind, code)
    if isinstance(error, Retryable):
        expected = {"7": 7.0, None: None}.get(headers.get("Retry_After"), 0.0)
        assert error.retry_after == expected


def test_a_page_that_leads_on_and_on_is_left(site: Site) -> None:
    site.page("/round", "", status=302, Location="/round")
    assert refused(site.url("/round"), limits(site, redirects=3)).code == "TOO_MANY_REDIRECTS"
    assert site.asked["/round"] == 4


def test_who_is_inside_the_house_is_not_asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.page("/secret", "secret")
    for url in (
        site.url("/secret"),
        f"http://localhost:{site.port}/secret",
        f"http://[::ffff:127.0.0.1]:{site.port}/secret",
        f"http://2130706433:{site.port}/secret",
        f"http://0x7f.1:{site.port}/secret",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://0.0.0.0/",
    ):
        error = refused(url, FetchLimits(seconds=5.0))
        assert (type(error), error.code) == (Permanent, "HOST_REFUSED"), url
    assert site.asked["/secret"] == 0


def test_a_redirect_into_the_house_is_not_followed(site: Site) -> None:
    with open_site() as inside:
        inside.page("/secret", "secret")
        url = site.page("/", "", status=302, Location=inside.url("/secret"))
        assert refused(url, limits(site)).code == "HOST_REFUSED"
        assert inside.asked["/secret"] == 0


def test_a_name_is_looked_up_once_and_that_address_is_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is public at the first look and private at the second gets the first look's address, or nothing."""
    answers = ["93.184.216.34", "127.0.0.1"]
    looked: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        if host != "rebinding.example":
            return real(host, port, *args, **kwargs)
        looked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers[min(len(looked), 2) - 1], port))]

    connected: list[Any] = []

    async def connect(remote_host: str, *args: Any, **kwargs: Any) -> Any:
        connected.append(remote_host)
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(anyio, "connect_tcp", connect)
    error = refused(f"http://rebinding.example:{site.port}/", FetchLimits(seconds=2.0))
    assert (type(error), error.code) == (Retryable, "FETCH_FAILED")
    assert connected == ["93.184.216.34"]


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in ("93.184.216.34", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    assert refused("http://both.example/", FetchLimits(seconds=2.0)).code == "HOST_REFUSED"


def test_a_host_that_is_not_there(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused("http://no-such-host.invalid/", FetchLimits(seconds=5.0)).code in ("HOST_UNKNOWN", "FETCH_FAILED")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = refused(f"http://127.0.0.1:{port}/", FetchLimits(seconds=5.0, allowed_hosts=(f"127.0.0.1:{port}",)))
    assert (type(error), error.code) == (Retryable, "FETCH_FAILED")


def test_a_site_that_says_nothing_or_drips_is_not_waited_for(site: Site) -> None:
    done = threading.Event()

    def silent(handler: BaseHTTPRequestHandler) -> None:
        done.wait(10)

    def dripping(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.end_headers()
        while not done.wait(0.05):
            handler.wfile.write(b"x")

    site.pages |= {"/silent": silent, "/dripping": dripping}
    try:
        for path in ("/silent", "/dripping"):
            error = refused(site.url(path), limits(site, seconds=0.4))
            assert (type(error), error.code) == (Retryable, "FETCH_TIMEOUT"), path
    finally:
        done.set()


def test_what_is_no_http_is_a_failure(site: Site) -> None:
    def noise(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"\x00\x01 this is no answer\r\n\r\n")

    site.pages["/noise"] = noise
    assert refused(site.url("/noise"), limits(site)).code == "FETCH_FAILED"
