"""Bodies of requests: nobody sends one who may not, and none takes more than its address allows."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from fastapi import Body, FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message

from penstock import ItemContext, Penstock, load_settings
from penstock.http import Admin, Json, Router, limit_body
from penstock.http import bodies as bodies_module
from penstock.http.bodies import BodyRequest
from penstock.http.routing import GuardedRoute
from penstock.server import create_app
from tests.http.conftest import SECRET, Served, served_site, serving
from tests.http.raw_client import RawClient, connected
from tests.http.test_openapi import install_all
from tests.http.test_submissions import add_kind
from tests.waiting import eventually

MIB = 1024 * 1024
ENDLESS = 10**15
SMALL = 4_096
WITHOUT_TOKEN = {"/parse-requests": 413, "/api/v1/recipes/parse": 413, "/ui/sign-in": 413}
own_routes = Router(prefix="/own")


@own_routes.post("/admins")
def change_all(body: dict[str, str], who: Admin) -> Response:
    return Json(body)


@own_routes.post("/small")
@limit_body(SMALL)
def take_little(body: Annotated[Any, Body()], who: Admin) -> Response:
    return Json(len(body))


class Question(BaseModel):
    """What the kind ``question`` is asked."""

    text: str


def install(app: Penstock, root: Path) -> None:
    """Every application, a kind that takes files and one that takes params."""
    install_all(app, root)
    add_kind(app, "letter", finds_kind=True)

    @app.kind("question")
    class Asked:
        params_schema = Question

        def process(self, item: ItemContext) -> object:
            return item.input


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests here."""
    folder = tmp_path_factory.mktemp("bodies")
    settings = load_settings(
        database_url=f"sqlite:///{folder}/penstock.db",
        files_directory=folder / "files",
        jwt_secret=SECRET,
        max_body_bytes=8 * MIB,
        body_memory_bytes=4 * MIB,
    )
    app = Penstock(settings=settings)
    install(app, folder)
    app.system.migrate()
    with serving(app, worker=False, more=[own_routes]) as served:
        yield served
    app.close()


@pytest.fixture
def stranger(served: Served) -> Iterator[RawClient]:
    """Somebody without a token, on a connection of their own."""
    with connected(served.url) as client:
        yield client


def token(served: Served, user: str = "ada", *, admin: bool = False) -> str:
    """A token of theirs."""
    issued: str = served.server.config.app.state.penstock.tokens.issue(user, is_admin=admin)  # type: ignore[union-attr]
    return issued


def routes_with_bodies(served: Served) -> list[APIRoute]:
    """Every address that takes one."""
    api: FastAPI = served.server.config.app  # type: ignore[assignment]
    uploads = ("/api/jobs",)  # it reads the request itself
    return [
        route
        for route in api.routes
        if isinstance(route, APIRoute)
        and (route.body_field is not None or (route.path in uploads and "POST" in (route.methods or ())))
    ]


# Who asks, before anything is taken --------------------------------------------------------------------------------


def test_every_address_refuses_a_stranger_before_the_first_byte_of_the_body(served: Served) -> None:
    routes = routes_with_bodies(served)
    assert len(routes) > 15
    for route in routes:
        path = route.path.replace("{", "0").replace("}", "0")
        is_form = path in ("/api/documents/jobs", "/api/jobs", "/ui/sign-in")
        kind = "multipart/form-data; boundary=x" if is_form else "application/json"
        expected = WITHOUT_TOKEN.get(route.path, 401)
        for method in route.methods or ():
            with connected(served.url) as client:
                client.send_head(method, path, Content_Type=kind, Content_Length=ENDLESS)
                assert client.answer().status == expected, f"{method} {route.path}"


def test_every_route_of_ours_with_a_body_has_a_guard(served: Served) -> None:
    for route in routes_with_bodies(served):
        if route.path == "/ui/sign-in":
            continue  # it takes the token itself, and few bytes more
        assert isinstance(route, GuardedRoute), route.path
        assert route.guards, f"{route.path} takes a body of anybody"


def test_a_stranger_who_sends_chunks_without_end_is_answered_at_once(stranger: RawClient) -> None:
    stranger.send_head("POST", "/recipes/parse-url/async", Content_Type="application/json", Transfer_Encoding="chunked")
    stranger.send_chunk(b"[" + b"[]," * 10_000)
    answer = stranger.answer()
    assert (answer.status, answer.code) == (401, "TOKEN_MISSING")


def test_a_token_that_is_not_good_is_none(stranger: RawClient) -> None:
    stranger.send_head("POST", "/api/documents/jobs", token="a.b.c", Content_Length=ENDLESS)
    assert stranger.answer().code == "TOKEN_INVALID"


def test_a_session_of_another_origin_is_refused_before_the_body(served: Served, stranger: RawClient) -> None:
    cookie = f"penstock_session={token(served)}"
    stranger.send_head("POST", "/api/documents/jobs", Cookie=cookie, Sec_Fetch_Site="cross-site", Content_Length=100)
    assert (answer := stranger.answer()).status == 403
    assert answer.code == "OTHER_ORIGIN"


def test_who_has_no_right_to_it_sends_nothing(served: Served, stranger: RawClient) -> None:
    stranger.send_head("POST", "/own/admins", token=token(served), Content_Length=100)
    assert (answer := stranger.answer()).status == 403
    assert answer.code == "ADMINS_ONLY"


def test_who_waits_to_be_asked_for_the_body_is_asked_only_if_they_may(served: Served) -> None:
    for given, expected in ((None, b"HTTP/1.1 401"), (token(served), b"HTTP/1.1 100")):
        with connected(served.url) as client:
            client.send_head("POST", "/recipes", token=given, Content_Length=100, Expect="100-continue")
            assert client.socket.recv(12) == expected


def test_what_a_user_sends_behind_an_answer_is_thrown_away(served: Served, stranger: RawClient) -> None:
    """Who has sent a body in vain sees why, and may ask something else on the same connection."""
    stranger.send_head("POST", "/recipes", token=token(served), Content_Type="application/json", Content_Length=3 * MIB)
    assert stranger.answer().status == 413
    stranger.send(b"x" * 3 * MIB).send_head("GET", "/healthz")
    assert stranger.answer().status == 200


def test_what_a_stranger_sends_behind_an_answer_is_not_even_read(stranger: RawClient) -> None:
    """A little of it, for those who did not know; a socket's buffers take some more."""
    stranger.send_head("POST", "/recipes", Content_Type="application/json", Content_Length=ENDLESS)
    assert stranger.answer().status == 401
    stranger.send_while_open(b"x" * MIB, 1_000)
    assert stranger.is_closed()
    for length in (1_000, 100_000):
        with connected(stranger.url) as client:
            client.send_head("POST", "/recipes", Content_Type="application/json", Content_Length=length)
            assert client.answer().status == 401
            client.send(b"x" * length).send_head("GET", "/healthz")
            assert client.answer().status == 200


# How large ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/recipes", MIB),
        ("/api/kinds/question/jobs", MIB),
        ("/parse-requests", 64 * 1024),
        ("/own/small", SMALL),
        ("/api/documents/jobs", 8 * MIB),
        ("/api/jobs", 8 * MIB),
    ],
)
def test_one_byte_too_many_is_refused_announced_or_not(served: Served, path: str, limit: int) -> None:
    kind = "multipart/form-data; boundary=x" if path in ("/api/documents/jobs", "/api/jobs") else "application/json"
    head = {"token": token(served, path, admin=True), "Content_Type": kind}
    with connected(served.url) as client:
        client.send_head("POST", path, **head, Content_Length=limit + 1)
        answer = client.answer()
        assert (answer.status, answer.code) == (413, "BODY_TOO_LARGE")
        assert f"{limit:,}".encode() in answer.body
    with connected(served.url) as client:
        client.send_head("POST", path, **head, Transfer_Encoding="chunked")
        start = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' if "x" in kind[-1] else b'"'
        client.send_chunk(start + b"a" * (limit - len(start))).send_chunk(b"a")
        assert client.answer().code == "BODY_TOO_LARGE"


def test_an_upload_may_be_larger_than_json(served: Served) -> None:
    ada = served.client()
    file = ("a.txt", b"word " * (2 * MIB // 5), "text/plain")
    assert ada.post("/api/documents/jobs", files={"file": file}).status_code == 201
    assert ada.post("/api/jobs", files={"file": file}).status_code == 202


def test_an_announced_length_that_is_no_number_of_this_world_is_refused(served: Served, stranger: RawClient) -> None:
    stranger.send_head("POST", "/recipes", token=token(served), Content_Length="9" * 18)
    assert stranger.answer().code == "BODY_TOO_LARGE"


def test_a_form_of_many_parts_is_refused(served: Served) -> None:
    files = [("file", (f"{number}.txt", b"x", "text/plain")) for number in range(30)]
    answer = served.client().post("/api/documents/jobs", files=files)
    assert (answer.status_code, answer.json()["code"]) == (400, "REQUEST_REFUSED")


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n%s\r\n'),
        ("application/x-www-form-urlencoded", b"x=%s&"),
    ],
)
@pytest.mark.parametrize("size", [10, MIB])
def test_texts_of_a_form_are_refused_before_they_take_memory(kind: str, field: bytes, size: int) -> None:
    """At most twenty of them are held, each of 64 KiB; of what follows nothing is taken."""
    body, taken = field % (b"y" * size) * (2_000_000 // size), 0

    async def receive() -> Message:
        nonlocal taken
        taken += 16_384
        return {"type": "http.request", "body": body[taken - 16_384 : taken], "more_body": taken < len(body)}

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", kind.encode())], "app": None}
    with pytest.raises(HTTPException) as refused:
        asyncio.run(BodyRequest(scope, receive).form().__aenter__())
    assert refused.value.status_code == 400
    assert taken <= 20 * min(size + 100, 64 * 1024) + 2 * 16_384


def test_large_files_of_one_upload_are_on_the_disk_and_not_in_memory() -> None:
    """Fifty files below Starlette's own bound would all be held."""
    assert bodies_module._SmallSpool.spool_max_size <= 64 * 1024


# How much of all of them --------------------------------------------------------------------------------------------


def test_one_caller_holds_a_share_of_the_memory_and_others_go_on(served: Served) -> None:
    memory = served.server.config.app.state.penstock.body_memory  # type: ignore[union-attr]
    eventually(lambda: memory.total_bytes == 0)
    with connected(served.url) as first, connected(served.url) as second:
        for client in (first, second):
            client.send_head(
                "POST", "/recipes", token=token(served, "eve"), Content_Type="application/json", Content_Length=MIB
            )
        first.send(b" " * (MIB - 1))
        eventually(lambda: memory.total_bytes == MIB - 1)
        second.send(b"  ")
        answer = second.answer()
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "BODIES_UNDER_WAY", "1")
        saved = served.client("bob").post("/recipes", json={"title": "Soup"})
        assert saved.status_code == 201
        first.send(b" ")
        assert first.answer().status == 422
    eventually(lambda: memory.total_bytes == 0)


def test_all_memory_for_bodies_is_bounded(served: Served) -> None:
    memory = served.server.config.app.state.penstock.body_memory  # type: ignore[union-attr]
    eventually(lambda: memory.total_bytes == 0)
    with connected(served.url) as client:
        for number in range(4):
            memory.take(f"caller {number}", MIB)
        try:
            client.send_head(
                "POST", "/recipes", token=token(served), Content_Type="application/json", Content_Length=20
            )
            client.send(b" ")
            answer = client.answer()
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "BODIES_UNDER_WAY", "1")
        finally:
            for number in range(4):
                memory.give_back(f"caller {number}", MIB)


def test_who_goes_away_in_the_middle_gives_the_memory_back(served: Served) -> None:
    memory = served.server.config.app.state.penstock.body_memory  # type: ignore[union-attr]
    eventually(lambda: memory.total_bytes == 0)
    with connected(served.url) as client:
        client.send_head("POST", "/recipes", token=token(served), Content_Type="application/json", Content_Length=MIB)
        client.send(b" " * 1000)
        eventually(lambda: memory.total_bytes == 1000)
    eventually(lambda: memory.total_bytes == 0)


# Reading JSON -------------------------------------------------------------------------------------------------------


def test_nobody_waits_while_large_json_is_read(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def read_slowly(body: bytes) -> Any:
        reading.set()
        assert go_on.wait(30)
        return json.loads(body)

    monkeypatch.setattr(bodies_module, "json", SimpleNamespace(loads=read_slowly))
    ada = served.client()
    text = json.dumps({"title": "Soup", "ingredients": ["x" * 900] * 100}).encode()
    with connected(served.url) as client:
        client.send_head(
            "POST", "/recipes", token=token(served), Content_Type="application/json", Content_Length=len(text)
        )
        client.send(text)
        assert reading.wait(30)
        assert ada.get("/healthz").status_code == 200
        go_on.set()
        assert client.answer().status == 201


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"1" * 100_000, b'"\xff"', b"{" + b" " * 100_000, b"[" + b"[]," * 30_000 + b"1]"]
)
def test_json_that_is_a_trap_is_a_bad_request(served: Served, body: bytes) -> None:
    answer = served.client().post("/recipes", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("REQUEST_REFUSED", "INVALID_INPUT")


# Mounted elsewhere ---------------------------------------------------------------------------------------------------


def test_the_limits_hold_in_an_application_of_others_under_their_server(tmp_path: Path) -> None:
    app = Penstock(settings=load_settings(database_url=f"sqlite:///{tmp_path}/penstock.db", jwt_secret=SECRET))
    install(app, tmp_path)
    app.system.migrate()
    jobs = create_app(app)
    site = FastAPI(lifespan=jobs.router.lifespan_context)
    site.mount("/tasks", jobs)
    good = jobs.state.penstock.tokens.issue("ada")
    with served_site(site) as url:
        for given, path, code in (
            (None, "/tasks/recipes", "TOKEN_MISSING"),
            (good, "/tasks/recipes", "BODY_TOO_LARGE"),
            (None, "/tasks/api/documents/jobs", "TOKEN_MISSING"),
            (good, "/tasks/api/documents/jobs", "BODY_TOO_LARGE"),
        ):
            with connected(url) as client:
                kind = "multipart/form-data; boundary=x"
                client.send_head("POST", path, token=given, Content_Type=kind, Content_Length=ENDLESS)
                assert client.answer().code == code
    app.close()
