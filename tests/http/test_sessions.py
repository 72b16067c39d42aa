"""Browsers' sessions: who they speak for, and which requests they count for."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx2
import jwt
import pytest

from penstock import Penstock
from penstock.cli.server_process import greeting
from penstock.http.sessions import LINK_SECONDS, SESSION_COOKIE, Links
from penstock.web.answers import own_path
from tests.http.conftest import SECRET, Served, on_sqlite

OURS = {"Sec-Fetch-Site": "same-origin"}
"""One database will do: sessions know none."""


@pytest.fixture
def served(app: Penstock, serve: Callable[..., Served]) -> Served:
    app.kind("hold")(lambda item: None)
    return serve(worker=False)


def browser(served: Served, user: str = "ada", *, admin: bool = False) -> httpx2.Client:
    """A client with a session instead of a token."""
    token = served.client(user, admin=admin).headers["Authorization"].removeprefix("Bearer ")
    return served.client_with(cookies={SESSION_COOKIE: token})


def held_job(served: Served, user: str = "ada") -> str:
    return str(served.app.submit("hold", owner=user).job.id)


@on_sqlite
def test_a_session_reads_like_a_token(served: Served) -> None:
    job = held_job(served)
    assert browser(served).get(f"/api/jobs/{job}").status_code == 200
    assert browser(served, "eve").get(f"/api/jobs/{job}").status_code == 404
    assert served.client(None).get(f"/api/jobs/{job}").status_code == 401


@on_sqlite
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_a_request_that_another_page_made_changes_nothing(served: Served, headers: dict[str, str]) -> None:
    job = held_job(served)
    one = browser(served)
    for answer in (
        one.delete(f"/api/jobs/{job}", headers=headers),
        one.post(f"/api/jobs/{job}/pause", headers=headers),
        one.post(f"/api/jobs/{job}/export", headers=headers),
        one.post("/ui/sign-out", headers=headers),
    ):
        assert answer.status_code == 403
    assert one.delete(f"/api/jobs/{job}", headers=headers).json()["code"] == "OTHER_ORIGIN"
    assert served.client().get(f"/api/jobs/{job}").json()["status"] == "queued"


@on_sqlite
def test_our_own_pages_change_things(served: Served) -> None:
    one = browser(served)
    assert one.post(f"/api/jobs/{held_job(served)}/pause", headers=OURS).status_code == 200
    old_browser = {"Origin": served.url}
    assert one.delete(f"/api/jobs/{held_job(served)}", headers=old_browser).status_code == 200


@on_sqlite
def test_a_token_in_the_header_needs_no_origin(served: Served) -> None:
    job = held_job(served)
    answer = served.client().delete(f"/api/jobs/{job}", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200


@on_sqlite
def test_signing_in_gives_a_cookie_no_script_can_read(served: Served) -> None:
    token = served.client().headers["Authorization"].removeprefix("Bearer ")
    one = served.client(None)
    answer = one.post("/ui/sign-in", data={"token": f" {token}\n", "next": "/ui/jobs?status=failed"}, headers=OURS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/jobs?status=failed")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert one.get("/ui/jobs").status_code == 200


@on_sqlite
def test_a_token_that_is_not_good_signs_nobody_in(served: Served) -> None:
    answer = served.client(None).post("/ui/sign-in", data={"token": "<script>"}, headers=OURS)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "Something went wrong" in answer.text
    assert "<script>" not in answer.text


@on_sqlite
def test_nobody_is_signed_in_by_a_page_of_somebody_else(served: Served) -> None:
    token = served.client("eve").headers["Authorization"].removeprefix("Bearer ")
    answer = served.client(None).post("/ui/sign-in", data={"token": token}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@on_sqlite
def test_signing_out_ends_the_session_also_for_who_copied_its_cookie(served: Served) -> None:
    one = browser(served)
    copied = one.cookies[SESSION_COOKIE]
    answer = one.post("/ui/sign-out", headers=OURS)
    assert answer.headers["location"] == "/ui/sign-in"
    assert f'{SESSION_COOKIE}=""' in answer.headers["set-cookie"]
    assert "Max-Age=0" in answer.headers["set-cookie"]
    thief = served.client_with(cookies={SESSION_COOKIE: copied})
    refused = thief.get("/api/jobs")
    assert (refused.status_code, refused.json()["code"]) == (401, "SESSION_ENDED")
    assert thief.get("/ui/jobs").headers["location"].startswith("/ui/sign-in")
    again = served.client(None).post("/ui/sign-in", data={"token": copied}, headers=OURS)
    assert (again.status_code, "set-cookie" in again.headers) == (401, False)
    assert browser(served).get("/api/jobs").status_code == 200, "other tokens of the same user go on"
    assert one.post("/ui/sign-out", headers=OURS).status_code == 303, "who is out stays out"


@on_sqlite
def test_a_link_signs_in_once(served: Served) -> None:
    service = served.server.config.app.state.penstock  # type: ignore[union-attr]
    code = service.links.make(service.tokens.issue("ada"))
    first = served.client(None).get(f"/ui/enter/{code}")
    assert (first.status_code, first.headers["location"]) == (303, "/ui/jobs")
    assert SESSION_COOKIE in first.headers["set-cookie"]
    second = served.client(None).get(f"/ui/enter/{code}")
    assert second.status_code == 410
    assert "set-cookie" not in second.headers
    assert served.client(None).get("/ui/enter/guess").status_code == 410


def test_links_are_bounded_and_forget_the_oldest() -> None:
    links = Links()
    codes = [links.make(f"token {number}") for number in range(1_001)]
    assert links.use(codes[0]) is None
    assert links.use(codes[1]) == "token 1"
    assert links.use(codes[1000]) == "token 1000"


def test_a_link_is_good_for_a_quarter_of_an_hour() -> None:
    moment = 0.0
    links = Links(now=lambda: moment)
    early, late = links.make("early"), links.make("late")
    moment = LINK_SECONDS - 1
    assert links.use(early) == "early"
    moment = LINK_SECONDS
    assert links.use(late) is None
    assert LINK_SECONDS == 15 * 60


@on_sqlite
def test_the_link_that_a_server_prints_signs_in_for_half_a_day(served: Served) -> None:
    [_, line] = greeting(served.server.config.app, served.url)  # type: ignore[arg-type]
    assert "works once, for 15 minutes" in line
    answer = served.client(None).get(line.rpartition(": ")[2])
    token = answer.cookies[SESSION_COOKIE]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == pytest.approx(12 * 3600, abs=1)


@pytest.mark.parametrize(
    "wanted",
    [
        "https://elsewhere.example/ui/jobs",
        "//elsewhere.example/ui/jobs",
        "/\\elsewhere.example/ui/",
        "\\\\elsewhere.example",
        "javascript:alert(1)",
        "/ui/../docs",
        "/ui/%2e%2e/docs",
        "/ui/.%2E/docs",
        "/ui/jobs/%2e%2e/%2e%2e/docs",
        "/ui/%252e%252e/docs",
        "/ui/%5c..%5cdocs",
        "/ui//elsewhere.example",
        "/ui;/../docs",
        "/docs",
        "/ui/jobs\r\nX: y",
        "//[",
        "/ui/" + "x" * 3000,
        None,
    ],
)
def test_signing_in_leads_nowhere_else(wanted: str | None) -> None:
    assert own_path(wanted, "") == "/ui/jobs"


def test_signing_in_leads_back_under_a_prefix() -> None:
    assert own_path("/tools/ui/system", "/tools") == "/ui/system"
    assert own_path("/ui/system", "/tools") == "/ui/jobs"


@on_sqlite
def test_whoever_is_not_signed_in_is_asked_to_and_led_back(served: Served) -> None:
    answer = served.client(None).get("/ui/jobs?q=a%26b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/ui/sign-in?next=/ui/jobs%3Fq%3Da%2526b"


@on_sqlite
def test_a_session_that_is_over_is_said_to_programs_and_leads_people_to_the_sign_in(served: Served) -> None:
    service = served.server.config.app.state.penstock  # type: ignore[union-attr]
    over = {SESSION_COOKIE: service.tokens.issue("ada", seconds=-60)}
    one = served.client_with(cookies=over)
    assert one.get("/api/jobs").json()["code"] == "TOKEN_EXPIRED"
    assert one.get("/ui/jobs").headers["location"].startswith("/ui/sign-in")


@on_sqlite
def test_a_token_that_is_too_long_for_a_cookie_is_refused_with_the_reason(served: Served) -> None:
    def token(groups: int) -> str:
        claims = {"sub": "ada", "exp": time.time() + 60, "groups": [f"group-{number:05}" for number in range(groups)]}
        return jwt.encode(claims, SECRET, algorithm="HS256")

    somebody = served.client_with(headers=OURS)
    accepted = somebody.post("/ui/sign-in", data={"token": token(150)})
    assert (accepted.status_code, "set-cookie" in accepted.headers) == (303, True)
    long = token(280)
    assert served.client(None, token=long).get("/api/jobs").status_code == 200
    refused = somebody.post("/ui/sign-in", data={"token": long})
    assert (refused.status_code, "set-cookie" in refused.headers) == (401, False)
    assert f"has {len(long):,} characters, and a browser keeps no more than" in refused.text
    for far_too_long in (token(700), token(2_000)):
        refused = somebody.post("/ui/sign-in", data={"token": far_too_long})
        assert (refused.status_code, "the token is too long" in refused.text) == (401, True)
