"""Fetching over TLS: HTTP/2 where the site speaks it, nobody without a certificate we trust, and the same bounds."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock import Permanent, Retryable
from penstock.errors import HandlerError
from penstock.http_client import trusted_certificates
from penstock_apps.recipes.parsing.fetching import USER_AGENT
from penstock_apps.recipes.parsing.limits import FetchLimits
from tests.applications.recipes.readers import fetch

PAGE = b"<p>soup</p>"
ENOUGH = 64 * 1024


@dataclass
class SecureSite:
    """What a site with a certificate answers, and what it saw."""

    port: int
    certificate: Path
    body: bytes = PAGE
    ends: bool = True
    """Whether an answer has an end: without one, its reader waits for more."""
    headers: list[tuple[str, str]] = field(default_factory=lambda: [("content-type", "text/html; charset=utf-8")])
    status: int = 200
    spoken: list[str | None] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)

    @property
    def host(self) -> str:
        """Its name and port, as a list of trusted hosts has them."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where its page is."""
        return f"https://{self.host}/soup"

    def limits(self, **changes: Any) -> FetchLimits:
        """Bounds that trust its address; its certificate is another matter."""
        given: dict[str, Any] = {"seconds": 5.0, "allowed_hosts": (self.host,)} | changes
        return FetchLimits(**given)


def certificate_in(folder: Path, name: str, *, until: timedelta = timedelta(days=1)) -> tuple[Path, Path]:
    """A certificate that vouches for itself, for one address; its file, and its key's."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"a test's site {name}")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + until)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files


@contextmanager
def open_site(folder: Path, *, name: str = "127.0.0.1", until: timedelta = timedelta(days=1)) -> Iterator[SecureSite]:
    """A site for the length of a ``with`` block; it speaks HTTP/2 and nothing else."""
    certificate, key = certificate_in(folder, name, until=until)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    door = socket.create_server(("127.0.0.1", 0))
    site = SecureSite(door.getsockname()[1], certificate)
    closing = threading.Event()

    def serve() -> None:
        while not closing.is_set():
            link, _ = door.accept()
            link.settimeout(10)
            # Who refuses our certificate, or has read enough, hangs up: that is what some tests are about.
            with link, suppress(OSError), context.wrap_socket(link, server_side=True) as secure:
                site.spoken.append(secure.selected_alpn_protocol())
                _converse(site, secure)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield site
    finally:
        closing.set()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", site.port), timeout=5).close()
        thread.join()
        door.close()


def _converse(site: SecureSite, link: ssl.SSLSocket) -> None:
    """Answer every request of one connection until the other side hangs up."""
    speech = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
    speech.initiate_connection()
    link.sendall(speech.data_to_send())
    left: dict[int, bytes] = {}
    while heard := link.recv(ENOUGH):
        for event in speech.receive_data(heard):
            if isinstance(event, h2.events.RequestReceived):
                site.asked.append(dict(event.headers))  # type: ignore[arg-type]
                speech.send_headers(event.stream_id, [(":status", str(site.status)), *site.headers])
                left[event.stream_id] = site.body
            elif isinstance(event, h2.events.StreamReset):
                left.pop(event.stream_id, None)
        for stream in list(left):
            left[stream] = _sent(speech, stream, left[stream])
            if not left[stream]:
                del left[stream]
                if site.ends:
                    speech.end_stream(stream)
        link.sendall(speech.data_to_send())


def _sent(speech: h2.connection.H2Connection, stream: int, body: bytes) -> bytes:
    """Send as much as the reader has room for; the rest."""
    while body and (room := min(speech.local_flow_control_window(stream), speech.max_outbound_frame_size)):
        speech.send_data(stream, body[:room])
        body = body[room:]
    return body


@pytest.fixture(autouse=True)
def _in_a_new_process() -> Iterator[None]:
    trusted_certificates.cache_clear()
    yield
    trusted_certificates.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecureSite]:
    """A site whose certificate is trusted, as an operator would: by the variable that OpenSSL reads."""
    with open_site(tmp_path) as one:
        monkeypatch.setenv("SSL_CERT_FILE", str(one.certificate))
        yield one


def refused(site: SecureSite, **changes: Any) -> HandlerError:
    """Why its page was not fetched."""
    with pytest.raises(HandlerError) as error:
        fetch(site.url, site.limits(**changes))
    return error.value


def test_a_site_that_offers_http2_is_spoken_to_in_it(site: SecureSite) -> None:
    site.body = "<p>süß</p>".encode() * 40_000  # larger than the window a connection begins with
    page = fetch(site.url, site.limits())
    assert (page.address, page.text) == (site.url, "<p>süß</p>" * 40_000)
    assert site.spoken == ["h2"]
    [asked] = site.asked
    assert (asked[":method"], asked[":scheme"], asked[":path"], asked[":authority"]) == (
        "GET", "https", "/soup", site.host,
    )  # fmt: skip
    assert asked["user-agent"] == USER_AGENT


def test_whom_to_trust_is_read_once(site: SecureSite) -> None:
    for _ in range(3):
        fetch(site.url, site.limits())
    assert (trusted_certificates.cache_info().misses, trusted_certificates.cache_info().hits) == (1, 2)


def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with open_site(tmp_path) as site:
        error = refused(site)
        assert (type(error), error.code) == (Retryable, "FETCH_FAILED")
        assert "certificate" in error.message.lower()
        assert site.asked == [], "nothing was asked of it"


@pytest.mark.parametrize(
    ("name", "until"), [("127.0.0.2", timedelta(days=1)), ("127.0.0.1", timedelta(days=-1))], ids=["name", "expired"]
)
def test_a_trusted_certificate_of_another_or_of_yesterday_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, until: timedelta
) -> None:
    with open_site(tmp_path, name=name, until=until) as site:
        monkeypatch.setenv("SSL_CERT_FILE", str(site.certificate))
        error = refused(site)
        assert (type(error), error.code) == (Retryable, "FETCH_FAILED")
        assert "certificate" in error.message.lower()
        assert site.asked == []


def test_a_page_that_is_too_large_is_left(site: SecureSite) -> None:
    site.body = b"0" * 300_000
    error = refused(site, bytes=100_000)
    assert (type(error), error.code) == (Permanent, "PAGE_TOO_LARGE")
    assert fetch(site.url, site.limits(bytes=300_000)).text == "0" * 300_000


def test_a_page_without_an_end_is_not_waited_for(site: SecureSite) -> None:
    site.ends = False
    error = refused(site, seconds=0.3)
    assert (type(error), error.code) == (Retryable, "FETCH_TIMEOUT")
    assert site.spoken == ["h2"]


def test_who_is_inside_the_house_is_not_asked_over_tls_either(site: SecureSite) -> None:
    error = refused(site, allowed_hosts=())
    assert (type(error), error.code) == (Permanent, "HOST_REFUSED")
    assert site.spoken == []


@pytest.mark.parametrize(
    ("status", "kind", "code"), [(404, Permanent, "PAGE_NOT_FOUND"), (503, Retryable, "PAGE_BUSY")]
)
def test_answers_have_their_codes(site: SecureSite, status: int, kind: type[HandlerError], code: str) -> None:
    site.status = status
    error = refused(site)
    assert (type(error), error.code) == (kind, code)
