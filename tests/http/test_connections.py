"""Connections: heads too large or too slow, bodies that stall, answers nobody reads, too many at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse
from uvicorn import Config

from penstock import Penstock, Settings, load_settings
from penstock.http import Json, Router
from penstock.http.bodies import note_caller
from penstock.http.connections import Connection, ConnectionLimits, Connections, Phase
from tests.http.conftest import SECRET, Served, serving
from tests.http.raw_client import connected
from tests.waiting import eventually

HEAD = 4_096
PER_ADDRESS = 5
ALL = 12
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /own/echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
own_routes = Router(prefix="/own")
unread = threading.Event()
hold, held = threading.Event(), threading.Semaphore(0)


@own_routes.get("/large")
async def send_without_end() -> Response:
    """Far more than the buffers of any socket."""

    async def pieces() -> AsyncIterator[bytes]:
        try:
            for _ in range(1_000):
                yield b"x" * 100_000
        finally:
            unread.set()

    return StreamingResponse(pieces())


@own_routes.get("/slow")
def answer_when_told() -> Response:
    held.release()
    assert hold.wait(30)
    return Json("done")


@own_routes.post("/echo")
def echo(body: dict[str, str]) -> Response:
    return Json(body)


def settings_with(folder: object, **limits: float) -> Settings:
    """Short times and small numbers."""
    return load_settings(
        database_url=f"sqlite:///{folder}/penstock.db",
        jwt_secret=SECRET,
        max_head_bytes=HEAD,
        connections_per_address=PER_ADDRESS,
        max_connections=ALL,
        **limits,
    )


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose clients have time."""
    app = Penstock(settings=settings_with(tmp_path_factory.mktemp("patient"), streams_per_user=2))
    app.kind("quiet")(lambda item: None)
    app.system.migrate()
    with serving(app, worker=False, more=[own_routes]) as served:
        yield served
    app.close()


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that waits for nobody."""
    app = Penstock(settings=settings_with(tmp_path_factory.mktemp("hasty"), head_seconds=0.2, stall_seconds=0.2))
    app.system.migrate()
    with serving(app, worker=False, more=[own_routes]) as served:
        yield served
    app.close()


# Heads ---------------------------------------------------------------------------------------------------------------

WITHOUT_END = (
    b"x" * 600_000
)  # more than is read from a socket at once: what begins in one read is counted from the next
TOO_LARGE = {
    "one header": GET + b"X: " + b"x" * HEAD + b"\r\n\r\n",
    "many headers": GET + b"X: y\r\n" * HEAD,
    "an address": b"GET /" + b"x" * HEAD + b" HTTP/1.1\r\n",
    "a header's name": GET + WITHOUT_END,
    "a value without end": GET + b"X: " + WITHOUT_END,
    "behind a body": POST + b"0\r\n" + b"X: y\r\n" * 100_000,
    "behind a body, without end": POST + b"0\r\nX: " + WITHOUT_END,
    "of a chunk": POST + b"1;" + WITHOUT_END,
}


@pytest.mark.parametrize("name", TOO_LARGE)
@pytest.mark.parametrize("pieces", [1, 40])
def test_a_head_that_is_too_large_is_refused(patient: Served, name: str, pieces: int) -> None:
    data = TOO_LARGE[name]
    size = len(data) // pieces
    with connected(patient.url) as client:
        for start in range(0, len(data), size):
            client.send_while_open(data[start : start + size], 1)
        answer = client.answer()
        assert (answer.status, answer.code, answer.headers["connection"]) == (431, "HEAD_TOO_LARGE", "close")
        assert client.is_closed()


def test_who_looks_after_the_server_sees_what_was_refused(patient: Served) -> None:
    with connected(patient.url) as client:
        assert client.send(TOO_LARGE["one header"]).answer().status == 431
    figures = patient.client(admin=True).get("/metrics").text
    assert 'penstock_refused_connections_total{code="HEAD_TOO_LARGE"}' in figures


def test_a_head_of_just_the_limit_is_read(patient: Served) -> None:
    with connected(patient.url) as client:
        client.send(GET + b"X: " + b"x" * (HEAD - len(GET) - 100) + b"\r\n\r\n")
        assert client.answer().status == 200


def test_the_limit_is_of_each_head_and_not_of_a_connection(patient: Served) -> None:
    with connected(patient.url) as client:
        for _ in range(5):
            client.send(GET + b"X: " + b"x" * (HEAD // 2) + b"\r\n\r\n")
            assert client.answer().status == 200


def test_a_large_body_is_no_large_head(patient: Served) -> None:
    text = b'{"a": "%s"}' % (b"x" * 10 * HEAD)
    with connected(patient.url) as client:
        client.send_head("POST", "/own/echo", Content_Type="application/json", Content_Length=len(text)).send(text)
        assert client.answer().body == text.replace(b": ", b":")


def test_headers_behind_the_body_are_not_the_requests(patient: Served) -> None:
    """A request is decided by its head: a token behind the body is none, though it comes in the same packet."""
    token = patient.server.config.app.state.penstock.tokens.issue("ada")  # type: ignore[union-attr]
    head = b"GET /api/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connected(patient.url) as client:
        client.send(head + b"0\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n")
        assert client.answer().status == 401


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_no_http_is_told_so(patient: Served, data: bytes) -> None:
    with connected(patient.url) as client:
        answer = client.send(data).answer()
        assert (answer.status, answer.code) == (400, "REQUEST_MALFORMED")
        assert client.is_closed()


def test_many_requests_at_once_are_not_all_kept(patient: Served) -> None:
    with connected(patient.url) as client:
        client.send_while_open((GET + b"\r\n") * 1_000, 1)
        assert client.rest().count(b"HTTP/1.1 200") < 100
    assert patient.client(None).get("/healthz").status_code == 200


def test_a_few_requests_at_once_are_all_answered(patient: Served) -> None:
    with connected(patient.url) as client:
        client.send((GET + b"\r\n") * 10)
        assert [client.answer().status for _ in range(10)] == [200] * 10


def test_an_upgrade_to_something_else_is_not_offered(patient: Served) -> None:
    with connected(patient.url) as client:
        client.send(GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n")
        assert client.answer().status == 200


# Time ----------------------------------------------------------------------------------------------------------------


def test_who_keeps_the_server_waiting_is_told_so(hasty: Served) -> None:
    """All at once: the server looks once a second."""
    with ExitStack() as open_now:
        heads = [b"G", b"GET /healthz HTTP/1.1\r\n", GET, GET + b"X: y"]
        late = [open_now.enter_context(connected(hasty.url)).send(sent) for sent in heads]
        blank = open_now.enter_context(connected(hasty.url))
        assert blank.send(GET + b"\r\n").answer().status == 200
        blank.send(b"\r\n")
        body = open_now.enter_context(connected(hasty.url))
        body.send_head("POST", "/own/echo", Content_Type="application/json", Content_Length=100).send(b"{")
        silent, answered = (open_now.enter_context(connected(hasty.url)) for _ in range(2))
        answered.send_head("POST", "/nowhere", Content_Length=5)
        assert answered.answer().status == 404
        answered.send(b"12345")
        for client in (*late, blank, body):
            answer = client.answer()
            assert (answer.status, answer.code) == (408, "REQUEST_TOO_SLOW")
            assert client.is_closed()
        assert silent.is_closed(), "who says nothing is left without a word"
        assert answered.is_closed(), "also who had to send the rest of a body first"


def test_a_body_behind_its_answer_is_not_read_for_ever(hasty: Served) -> None:
    with connected(hasty.url) as client:
        client.send_head("POST", "/recipes-of-nobody", Transfer_Encoding="chunked")
        assert client.answer().status == 404
        client.send_while_open(b"1000\r\n" + b"x" * 0x1000 + b"\r\n", 10_000_000)
        assert client.is_closed()


def test_an_answer_that_nobody_reads_is_given_up(hasty: Served) -> None:
    unread.clear()
    with connected(hasty.url, receive_buffer=4_096) as client:
        client.send_head("GET", "/own/large")
        assert unread.wait(30)


def test_a_request_that_takes_long_here_is_not_late(hasty: Served) -> None:
    """It is the server's turn; looks at the connection happen meanwhile."""
    hold.clear()
    looks = threading.Semaphore(0)
    state = hasty.server.server_state
    assert isinstance(state, Connections)
    close_late = state.close_late

    def look(now: float) -> None:
        close_late(now + 3600)
        looks.release()

    with connected(hasty.url) as client:
        client.send_head("GET", "/own/slow")
        assert held.acquire(timeout=30)
        state.close_late = look  # type: ignore[method-assign]
        try:
            assert looks.acquire(timeout=30)
            assert looks.acquire(timeout=30)
        finally:
            del state.close_late
            hold.set()
        assert client.answer().status == 200


# How many ------------------------------------------------------------------------------------------------------------


def test_one_address_has_its_part_and_others_theirs(patient: Served) -> None:
    with ExitStack() as open_now:
        for _ in range(PER_ADDRESS):
            client = open_now.enter_context(connected(patient.url, source="127.0.0.2"))
            assert client.send(GET + b"\r\n").answer().status == 200
        answer = open_now.enter_context(connected(patient.url, source="127.0.0.2")).answer()
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "TOO_MANY_CONNECTIONS", "1")
        other = open_now.enter_context(connected(patient.url, source="127.0.0.3"))
        assert other.send(GET + b"\r\n").answer().status == 200
    eventually(lambda: is_served(patient, "127.0.0.2"))


def is_served(served: Served, source: str) -> bool:
    """Is this address answered?"""
    with connected(served.url, source=source) as client:
        return client.send(GET + b"\r\n").answer().status == 200


def send_all_away(served: Served) -> None:
    """End the connections of the tests before."""
    for client in served.clients:
        client.close()
    eventually(lambda: not served.server.server_state.connections)


def test_who_keeps_us_waiting_for_longest_makes_room(patient: Served) -> None:
    send_all_away(patient)
    with ExitStack() as open_now:
        idle = []
        for number in range(1, ALL + 1):
            idle.append(open_now.enter_context(connected(patient.url, source=f"127.0.1.{number}")).send(b"GET "))
            eventually(lambda: len(patient.server.server_state.connections) == len(idle))
        assert is_served(patient, "127.0.0.9")
        eventually(idle[0].is_closed)
        assert idle[1].send(b"/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").answer().status == 200


def test_when_all_are_busy_the_next_is_told_so(patient: Served) -> None:
    send_all_away(patient)
    hold.clear()
    with ExitStack() as open_now:
        try:
            for number in range(1, ALL + 1):
                client = open_now.enter_context(connected(patient.url, source=f"127.0.2.{number}"))
                client.send_head("GET", "/own/slow")
                assert held.acquire(timeout=30)
            answer = open_now.enter_context(connected(patient.url)).answer()
            assert (answer.status, answer.code) == (503, "TOO_MANY_CONNECTIONS")
        finally:
            hold.set()
    eventually(lambda: is_served(patient, "127.0.0.1"))


def test_proxies_are_not_counted_by_address(patient: Served) -> None:
    with ExitStack() as open_now:
        for _ in range(PER_ADDRESS + 2):
            client = open_now.enter_context(connected(patient.url))
            assert client.send(GET + b"\r\n").answer().status == 200


# Streams -------------------------------------------------------------------------------------------------------------


def test_one_user_has_so_many_streams_and_others_theirs(patient: Served) -> None:
    job = patient.app.submit("quiet", {}, owner="ada").job
    streams = patient.server.config.app.state.penstock.streams  # type: ignore[union-attr]
    ada = patient.client()
    with ada.stream("GET", f"/api/jobs/{job.id}/events") as first, ada.stream("GET", "/api/jobs/live") as second:
        assert (first.status_code, second.status_code) == (200, 200)
        for path in (f"/api/jobs/{job.id}/events", f"/api/jobs/{job.id}/stream", "/api/jobs/live"):
            refused = ada.get(path)
            assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_STREAMS")
            assert refused.headers["retry-after"] == "1"
        with patient.client("bob").stream("GET", "/api/jobs/live") as bobs:
            assert bobs.status_code == 200
        assert ada.get("/api/jobs").status_code == 200
    eventually(lambda: not streams.counts)
    with ada.stream("GET", "/api/jobs/live") as again:
        assert again.status_code == 200


def test_a_stream_that_is_refused_otherwise_takes_no_place(patient: Served) -> None:
    ada = patient.client()
    for _ in range(5):
        assert ada.get("/api/jobs/0198c0de-0000-7000-8000-000000000000/events").status_code == 404
    streams = patient.server.config.app.state.penstock.streams  # type: ignore[union-attr]
    eventually(lambda: not streams.counts)


# A drip, by a clock that the test holds -----------------------------------------------------------------------------


class Wire(asyncio.Transport):
    """What a connection says to its client."""

    def __init__(self) -> None:
        super().__init__()
        self.said = b""
        self.closed = False
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.said += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.2", 1) if name in ("peername", "sockname") else default

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def test_a_body_has_to_bring_enough_to_go_on() -> None:
    """A byte now and then is not enough; what the server does not read is not the client's fault."""
    now = 0.0
    limits = ConnectionLimits(HEAD, head_seconds=10, stall_seconds=30, connections=10, per_address=10)
    state = Connections(limits, is_proxy=bool, count_refusal=print)

    async def never(_scope: object, _receive: object, _send: object) -> None:
        await asyncio.Event().wait()

    def begin(loop: asyncio.AbstractEventLoop) -> tuple[Connection, Wire]:
        connection, wire = Connection(Config(never, log_config=None), state, {}, loop), Wire()
        connection.connection_made(wire)
        connection.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        assert connection.phase is Phase.BODY
        return connection, wire

    async def look() -> None:
        nonlocal now
        loop = asyncio.get_running_loop()
        loop.time = lambda: now  # type: ignore[method-assign]
        (dripping, dripped), (waiting, waited), (steady, _) = begin(loop), begin(loop), begin(loop)
        waiting.flow.read_paused = True
        for now in (10.0, 20.0, 30.0):
            dripping.data_received(b"x")
            steady.data_received(b"x" * 16_384)
            state.close_late(now)
        assert dripped.said == b""
        waiting.flow.read_paused = False
        now = 31.0
        steady.data_received(b"x" * 16_384)
        state.close_late(now)
        assert b"REQUEST_TOO_SLOW" in dripped.said
        assert waited.said == b"", "it had to wait itself until a moment ago"
        state.close_late(61.0)
        assert b"REQUEST_TOO_SLOW" in waited.said
        assert not steady.transport.is_closing(), "it goes on"
        for task in state.tasks:
            task.cancel()

    asyncio.run(look())


@pytest.mark.parametrize("user", [None, "ada"])
def test_a_strangers_body_behind_its_answer_is_left_in_the_socket(user: str | None) -> None:
    limits = ConnectionLimits(HEAD, head_seconds=10, stall_seconds=30, connections=10, per_address=10)
    state = Connections(limits, is_proxy=bool, count_refusal=print)

    async def refuse(scope: Any, _receive: object, send: Any) -> None:
        note_caller(scope, user, "")
        await send({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async def look() -> None:
        wire = Wire()
        config = Config(refuse, log_config=None, proxy_headers=False)
        connection = Connection(config, state, {}, asyncio.get_running_loop())
        connection.connection_made(wire)
        connection.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n")
        await asyncio.gather(*state.tasks)
        assert b"403" in wire.said
        connection.data_received(b"x" * 200_000)
        assert not wire.is_paused, "a little of it is read, so that the answer is seen"
        connection.data_received(b"x" * 100_000)
        assert wire.is_paused is (user is None)
        wire.close()
        connection.connection_lost(None)

    asyncio.run(look())
