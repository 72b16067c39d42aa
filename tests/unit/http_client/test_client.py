"""One guarded way to ask other hosts, and hosts that do their worst."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from typing import Any

import anyio
import pytest

from penstock.errors import (
    AnswerTooLarge,
    AnswerTooLate,
    HostRefused,
    HostUnknown,
    RequestFailed,
    TooManyRedirects,
)
from penstock.http_client import Answer, AnswerLimits, Head, HttpClient, configured_host
from tests.unit.http_client.attackers import Attacker, attacking

LIMITS = AnswerLimits(seconds=5.0, bytes=100_000, redirects=5)
HASTE = AnswerLimits(seconds=0.4, bytes=100_000, redirects=50)
"""For hosts that go on for as long as anybody listens: a test of these ends by this, or by the time of the test."""


def ask(url: str, limits: AnswerLimits = LIMITS, *, allowed: tuple[str, ...] = (), **options: Any) -> Answer:
    """Ask once, with a client of its own."""

    async def once() -> Answer:
        async with HttpClient(allowed_hosts=allowed) as client:
            return await client.ask("GET", url, limits, **options)

    return asyncio.run(once())


def ask_attacker(attacker: Attacker, limits: AnswerLimits = LIMITS, **options: Any) -> Answer:
    return ask(attacker.url, limits, allowed=(attacker.host,), **options)


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """An answer as it is on the wire."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


# Time -------------------------------------------------------------------------------------------------------------


def say_nothing(attacker: Attacker, link: socket.socket) -> None:
    attacker.over.wait()


def drip_headers(attacker: Attacker, link: socket.socket) -> None:
    attacker.send(link, b"HTTP/1.1 200 OK\r\n")
    while not attacker.over.wait(0.02):
        attacker.send(link, b"X-Drip: 1\r\n")


def drip_one_header(attacker: Attacker, link: socket.socket) -> None:
    attacker.send(link, b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not attacker.over.wait(0.02):
        attacker.send(link, b"x")


def drip_body(attacker: Attacker, link: socket.socket) -> None:
    attacker.send(link, b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n")
    while not attacker.over.wait(0.02):
        attacker.send(link, b"x")


def redirect_slowly(attacker: Attacker, link: socket.socket) -> None:
    """Each hop takes a part of the time alone; together they go on for ever."""
    attacker.over.wait(0.1)
    attacker.send(link, answer(b"", "Location: /again", "Connection: close", status="302 Found"))


def promise_more(attacker: Attacker, link: socket.socket) -> None:
    attacker.send(link, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nten bytes.")
    attacker.over.wait()


def keep_on_continuing(attacker: Attacker, link: socket.socket) -> None:
    while not attacker.over.wait(0.02):
        attacker.send(link, b"HTTP/1.1 100 Continue\r\n\r\n")


@pytest.mark.parametrize(
    "behave",
    [say_nothing, drip_headers, drip_one_header, drip_body, redirect_slowly, promise_more, keep_on_continuing],
)
def test_one_deadline_holds_from_the_lookup_to_the_last_byte(behave: Any) -> None:
    with attacking(behave) as attacker, pytest.raises(AnswerTooLate):
        ask_attacker(attacker, HASTE)


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it keep others from looking up theirs: more hang here than an event loop has threads."""
    over = threading.Event()
    real = socket.getaddrinfo

    def slow(host: str, *args: Any, **kwargs: Any) -> Any:
        if host.endswith(".slow.example"):
            over.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def crowd(url: str, host: str) -> list[Any]:
        async with HttpClient(allowed_hosts=(host,)) as client:
            slow_ones = [client.ask("GET", f"http://{number}.slow.example/", HASTE) for number in range(60)]
            return await asyncio.gather(*slow_ones, client.ask("GET", url, LIMITS), return_exceptions=True)

    with attacking(lambda attacker, link: attacker.send(link, answer(b"well"))) as attacker:
        *late, well = asyncio.run(crowd(attacker.url, attacker.host))
    over.set()
    assert well.body == b"well"
    assert {type(error) for error in late} == {AnswerTooLate}


# Size -------------------------------------------------------------------------------------------------------------


def send_for_ever(head: bytes, piece: bytes) -> Any:
    def behave(attacker: Attacker, link: socket.socket) -> None:
        attacker.send(link, head)
        while not attacker.over.is_set() and attacker.sent_bytes < 50_000_000:
            attacker.send(link, piece)

    return behave


OK = b"HTTP/1.1 200 OK\r\n"
PACKED = gzip.compress(bytes(50_000_000))


@pytest.mark.parametrize(
    "behave",
    [
        send_for_ever(OK + b"\r\n", b"x" * 65_536),
        send_for_ever(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 5_000),
        send_for_ever(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
        send_for_ever(OK + b"Content-Encoding: gzip\r\n\r\n", PACKED),
        send_for_ever(OK + b"Content-Encoding: deflate\r\n\r\n", PACKED),
    ],
    ids=["body", "pieces", "chunks", "gzip", "not deflate"],
)
def test_an_answer_is_bounded_while_it_is_read(behave: Any) -> None:
    with attacking(behave) as attacker, pytest.raises(RequestFailed):
        ask_attacker(attacker)
    assert attacker.sent_bytes < 20_000_000, "nobody reads the rest"


@pytest.mark.parametrize("piece", [b"HTTP/1.1 100 Continue\r\n\r\n" * 100, b"X-Header: value\r\n" * 100])
def test_what_comes_before_an_answer_is_bounded_too(piece: bytes) -> None:
    head = b"" if piece.startswith(b"HTTP") else OK
    with attacking(send_for_ever(head, piece)) as attacker, pytest.raises(RequestFailed) as failure:
        ask_attacker(attacker, AnswerLimits(seconds=60.0, bytes=100_000))
    assert not isinstance(failure.value, AnswerTooLate), "it ends by what was sent, and not by the clock"


def test_an_answer_comes_in_a_bounded_number_of_pieces() -> None:
    """Each of them takes as long as a large one, and there would be millions."""
    behave = send_for_ever(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1_000)
    with attacking(behave) as attacker, pytest.raises(AnswerTooLarge, match="pieces"):
        ask_attacker(attacker, AnswerLimits(seconds=60.0, bytes=10_000_000))


def say(said: bytes) -> Any:
    return lambda attacker, link: attacker.send(link, said)


def test_a_packed_answer_is_unpacked_within_its_bound() -> None:
    with attacking(say(answer(gzip.compress(b"soup"), "Content-Encoding: gzip"))) as attacker:
        assert ask_attacker(attacker).body == b"soup"
    bomb = answer(gzip.compress(bytes(30_000_000)), "Content-Encoding: gzip")
    with attacking(say(bomb)) as attacker, pytest.raises(AnswerTooLarge):
        ask_attacker(attacker)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", ", ".join(["gzip"] * 1_000)])
def test_a_bomb_in_a_bomb_is_not_unpacked(encoding: str) -> None:
    packed = answer(gzip.compress(gzip.compress(b"soup")), f"Content-Encoding: {encoding}")
    with attacking(say(packed)) as attacker, pytest.raises(RequestFailed, match="nobody has asked for"):
        ask_attacker(attacker)
    assert b"gzip, deflate" in attacker.heard[0]


def test_a_body_nobody_wants_is_not_read() -> None:
    seen: list[Head] = []

    def look(head: Head) -> bool:
        seen.append(head)
        return False

    with attacking(send_for_ever(OK + b"Content-Type: video/mp4\r\n\r\n", b"x" * 65_536)) as attacker:
        assert ask_attacker(attacker, wants_body=look).body == b""
    assert attacker.sent_bytes < 20_000_000
    assert (seen[0].status, seen[0].headers["content-type"]) == (200, "video/mp4")


# Where to ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1"]
)
def test_a_host_inside_is_not_connected_to(host: str) -> None:
    with attacking(say_nothing) as attacker:
        with pytest.raises((HostRefused, HostUnknown)):
            ask(f"http://{host}:{attacker.port}/")
        assert attacker.heard == []


def test_what_is_allowed_for_one_client_is_not_for_another() -> None:
    """An operator's own service may be asked by the client that is made for it; nobody's redirect leads there."""
    with attacking(lambda attacker, link: attacker.send(link, answer(b"secret"))) as inside:
        assert ask(inside.url, allowed=(configured_host(inside.url),)).body == b"secret"
        with pytest.raises(HostRefused):
            ask(inside.url, allowed=("models.example:80", f"127.0.0.1:{inside.port + 1}"))
        with attacking(
            lambda attacker, link: attacker.send(link, answer(b"", f"Location: {inside.url}", status="302 Found"))
        ) as outside:
            with pytest.raises(HostRefused):
                ask_attacker(outside)
            with pytest.raises(HostRefused):
                ask_attacker(outside, onward=lambda _, location: location)
        assert len(inside.heard) == 1


def test_the_address_that_was_looked_at_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["93.184.216.34", "127.0.0.1"])
    connected: list[str] = []

    def rebinding(host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    async def connect(remote_host: str, *args: Any, **kwargs: Any) -> Any:
        connected.append(remote_host)
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(anyio, "connect_tcp", connect)
    with pytest.raises(RequestFailed):
        ask("http://rebinding.example/")
    assert connected == ["93.184.216.34"]


def test_one_private_address_among_many_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        socket, "getaddrinfo",
        lambda host, port, **_: [(2, 1, 6, "", (address, port)) for address in ("93.184.216.34", "10.0.0.1")],
    )  # fmt: skip
    with pytest.raises(HostRefused):
        ask("http://both.example/")


def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with attacking(lambda attacker, link: attacker.send(link, answer(b"proxied"))) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        with attacking(lambda attacker, link: attacker.send(link, answer(b"direct"))) as attacker:
            assert ask_attacker(attacker).body == b"direct"
        with pytest.raises(HostRefused):
            ask("http://10.0.0.1/")
        assert proxy.heard == []


def test_redirects_are_counted_and_without_any_an_answer_like_others() -> None:
    with attacking(
        lambda attacker, link: attacker.send(
            link, answer(b"", "Location: /again", "Connection: close", status="301 Moved")
        )
    ) as attacker:
        with pytest.raises(TooManyRedirects):
            ask_attacker(attacker, AnswerLimits(5.0, 1_000, redirects=3))
        assert len(attacker.heard) == 4
        assert ask_attacker(attacker, AnswerLimits(5.0, 1_000)).head.status == 301


@pytest.mark.parametrize("said", [b"\x00\x01 no http\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", b""])
def test_what_is_no_answer_is_a_failure(said: bytes) -> None:
    with attacking(lambda attacker, link: attacker.send(link, said)) as attacker, pytest.raises(RequestFailed):
        ask_attacker(attacker)


def test_a_request_that_is_cancelled_lets_go_of_its_connection() -> None:
    begun, gone = threading.Event(), threading.Event()

    def wait_for_the_end(attacker: Attacker, link: socket.socket) -> None:
        begun.set()
        if link.recv(1) == b"":
            gone.set()

    async def cancel(attacker: Attacker) -> None:
        async with HttpClient(allowed_hosts=(attacker.host,)) as client:
            task = asyncio.create_task(client.ask("GET", attacker.url, LIMITS))
            assert await asyncio.to_thread(begun.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(gone.wait, 5)

    with attacking(wait_for_the_end) as attacker:
        asyncio.run(cancel(attacker))
