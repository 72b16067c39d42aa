"""What a server believes of a request, and what it shows to strangers: by raw requests on a socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from penstock import Penstock, Settings, load_settings
from penstock.errors import ConfigurationError
from penstock.http.hosts import Hosts
from penstock.http.sessions import SESSION_COOKIE
from tests.http.conftest import Served, on_sqlite, serving

Serve = Callable[..., Served]


class Answer:
    """What came back over a socket."""

    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    @property
    def code(self) -> str:
        """The code of a problem."""
        return str(json.loads(self.body)["code"])


def ask(served: Served, path: str, *lines: str, method: str = "GET") -> Answer:
    """One request as it is written here, with no header that is not."""
    address = urlsplit(served.url)
    text = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "Connection: close", "Content-Length: 0", "", ""])
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(text.encode("latin-1"))
        return Answer(b"".join(iter(lambda: connection.recv(65_536), b"")))


@contextmanager
def served_with(settings: Settings, **changes: object) -> Iterator[Served]:
    """A server whose environment says something else."""
    app = Penstock(settings=load_settings(**{**settings.model_dump(), **changes}))
    try:
        with serving(app, worker=False) as served:
            yield served
    finally:
        app.close()


def bearer(served: Served, user: str, *, admin: bool = False) -> str:
    return f"Authorization: {served.client(user, admin=admin).headers['Authorization']}"


# Host -----------------------------------------------------------------------------------------------------------------


@on_sqlite
@pytest.mark.parametrize(
    "lines",
    [
        ("Host: evil.example",),
        ("Host: 127.0.0.1.evil.example",),
        ("Host: localhost.evil.example",),
        ("Host: 192.168.1.1",),
        ("Host: [::2]",),
        ("Host: 127.0.0.1@evil.example",),
        ("Host: 127.0.0.1/evil",),
        ("Host: ",),
        ("Host: 127.0.0.1", "Host: evil.example"),
    ],
)
def test_a_server_on_this_machine_answers_to_no_other_name(serve: Serve, lines: tuple[str, ...]) -> None:
    served = serve(worker=False)
    for path in ("/api/jobs", "/docs", "/metrics", "/ui/sign-in"):
        answer = ask(served, path, *lines)
        assert answer.status == 400, path
        assert b"evil" not in answer.body, "it repeats nothing of it"
        if len(lines) == 1:
            assert answer.code == "HOST_NOT_ALLOWED"


@on_sqlite
def test_a_server_on_this_machine_answers_to_its_own_names(serve: Serve) -> None:
    served = serve(worker=False)
    for host in (urlsplit(served.url).netloc, "localhost", "LOCALHOST:80", "[::1]:8765", "127.8.8.8", "localhost."):
        assert ask(served, "/ui/sign-in", f"Host: {host}").status == 200, host
    assert ask(served, "/healthz", "Host: 10.1.2.3:8765").status == 200, "a probe asks by whatever it has"


@on_sqlite
def test_names_that_are_listed_are_answered_to_and_no_others(settings: Settings) -> None:
    with served_with(settings, allowed_hosts="jobs.example.org,.internal.example") as served:
        for host, status in (
            ("jobs.example.org", 200), ("Jobs.Example.org:443", 200), ("a.internal.example", 200),
            ("internal.example", 400), ("xjobs.example.org", 400), ("127.0.0.1:8765", 200), ("10.0.0.7", 400),
        ):  # fmt: skip
            assert ask(served, "/ui/sign-in", f"Host: {host}").status == status, host


def test_a_server_that_others_reach_answers_to_addresses_and_to_its_name() -> None:
    hosts = Hosts.of_listener("0.0.0.0")
    assert all(map(hosts.allow, ["10.0.0.7:8765", "[fd00::7]", "localhost"]))
    assert not any(map(hosts.allow, ["evil.example", "10.0.0.7.evil.example", "", ":80", "a b"]))
    assert Hosts.of_listener("jobs.example.org").allow("jobs.example.org:8765")
    assert Hosts(("*",)).allow("anything at all")


# Proxies --------------------------------------------------------------------------------------------------------------

FORWARDED = ("Host: 127.0.0.1", "X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https")


def sign_in(served: Served, *lines: str) -> str:
    code = served.server.config.app.state.penstock.links.make("token")  # type: ignore[union-attr]
    return ask(served, f"/ui/enter/{code}", *lines).headers["set-cookie"]


@on_sqlite
def test_no_proxy_is_believed_unless_it_is_named(serve: Serve, settings: Settings) -> None:
    assert "Secure" not in sign_in(serve(worker=False), *FORWARDED)
    for proxies in ("127.0.0.1", "10.0.0.0/8,127.0.0.0/8", "*"):
        with served_with(settings, trusted_proxies=proxies) as served:
            assert "Secure" in sign_in(served, *FORWARDED), proxies
    with served_with(settings, trusted_proxies="10.0.0.0/8") as served:
        assert "Secure" not in sign_in(served, *FORWARDED)


@on_sqlite
def test_behind_a_proxy_guests_are_told_apart_by_what_it_says_last(settings: Settings) -> None:
    """What a client wrote into the header itself comes before what the proxy adds."""
    with served_with(settings, trusted_proxies="127.0.0.1", metrics_networks="198.51.100.0/24") as served:
        near = ("Host: 127.0.0.1", "X-Forwarded-For: 203.0.113.9, 198.51.100.7")
        forged = ("Host: 127.0.0.1", "X-Forwarded-For: 198.51.100.7, 203.0.113.9")
        assert ask(served, "/metrics", *near).status == 200
        assert ask(served, "/metrics", *forged).status == 401
        assert ask(served, "/metrics", "Host: 127.0.0.1", "X-Forwarded-For: nonsense").status == 401


@pytest.mark.parametrize("wrong", ["example.org", "10.0.0.0/33", "10.0.0.1/8", "127.0.0.1,,x"])
def test_a_network_that_is_none_is_refused_at_the_start(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="PENSTOCK_TRUSTED_PROXIES"):
        load_settings(trusted_proxies=wrong)


# What strangers see ---------------------------------------------------------------------------------------------------


@on_sqlite
def test_metrics_are_for_this_machine_and_for_admins(settings: Settings, serve: Serve) -> None:
    here = serve(worker=False)
    assert ask(here, "/metrics", "Host: 127.0.0.1").status == 200
    for header in ("X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "Via: 1.1 nginx", "X-Real-IP: ::1"):
        handed_on = ask(here, "/metrics", "Host: 127.0.0.1", header)
        assert (handed_on.status, handed_on.code) == (401, "TOKEN_MISSING"), header
    with served_with(settings, metrics_networks="10.0.0.0/8") as served:
        assert ask(served, "/metrics", "Host: 127.0.0.1").status == 401
        user = ask(served, "/metrics", "Host: 127.0.0.1", bearer(served, "ada"))
        assert (user.status, user.code) == (403, "ADMINS_ONLY")
        admin = ask(served, "/metrics", "Host: 127.0.0.1", bearer(served, "root", admin=True))
        assert admin.status == 200
        assert b"penstock_http_request_seconds" in admin.body


@on_sqlite
def test_who_reads_the_reference_is_a_setting(settings: Settings, serve: Serve) -> None:
    host = "Host: 127.0.0.1"
    paths = ("/docs", "/openapi.json")
    assert [ask(serve(worker=False), path, host).status for path in paths] == [200, 200]
    with served_with(settings, reference_access="users") as served:
        assert [ask(served, path, host).status for path in paths] == [401, 401]
        assert [ask(served, path, host, bearer(served, "ada")).status for path in paths] == [200, 200]
        token = served.client().headers["Authorization"].removeprefix("Bearer ")
        assert ask(served, "/docs", host, f"Cookie: {SESSION_COOKIE}={token}").status == 200
    with served_with(settings, reference_access="nobody") as served:
        assert [ask(served, path, host, bearer(served, "root", admin=True)).status for path in paths] == [404, 404]
        assert ask(served, "/ui/jobs", host, bearer(served, "ada")).status == 200, "pages need it, and not from there"
    with pytest.raises(ConfigurationError, match="PENSTOCK_REFERENCE_ACCESS"):
        load_settings(reference_access="some")


@on_sqlite
def test_no_answer_is_kept_or_taken_for_something_else(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    job = app.submit("held", {}, owner="ada").job
    ada = bearer(served, "ada")
    app.jobs.cancel(job.id)
    asked = [
        ("GET", "/api/jobs", 200), ("GET", f"/api/jobs/{job.id}", 200), ("GET", f"/api/jobs/{job.id}/events", 200),
        ("GET", "/api/jobs/nonsense", 422), ("GET", "/nowhere", 404), ("PUT", "/api/jobs", 405),
        ("POST", f"/api/jobs/{job.id}/pause", 409), ("GET", "/healthz", 200), ("GET", "/metrics", 200),
        ("GET", "/docs", 200), ("GET", "/openapi.json", 200), ("GET", "/ui/jobs", 200), ("GET", "/api/system", 403),
    ]  # fmt: skip
    for method, path, status in asked:
        answer = ask(served, path, "Host: 127.0.0.1", ada, method=method)
        assert answer.status == status, path
        assert answer.headers["cache-control"] == "no-store", path
        assert answer.headers["x-content-type-options"] == "nosniff", path
    assert ask(served, "/api/jobs", "Host: 127.0.0.1").headers["cache-control"] == "no-store", "a 401 too"


@on_sqlite
def test_a_defect_is_not_kept_either(app: Penstock, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(worker=False)
    monkeypatch.setattr(type(app.system), "check_database", lambda self: 1 / 0)
    answer = ask(served, "/readyz", "Host: 127.0.0.1")
    assert (answer.status, answer.headers["cache-control"]) == (500, "no-store")
    assert answer.headers["x-content-type-options"] == "nosniff"
