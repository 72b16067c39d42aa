"""Guests who sign in still see what they asked for: by its id, and in the browser they asked with. Nobody sees more."""

from __future__ import annotations

from http.cookies import SimpleCookie
from typing import Any
from uuid import UUID, uuid4

import httpx2

from penstock_apps.recipes.guest_requests import GUEST_COOKIE
from tests.applications.recipes.conftest import Kitchen
from tests.applications.recipes.pages import PAGES
from tests.http.conftest import on_sqlite

PATIENCE = 60.0
pytestmark = on_sqlite


def ask(client: httpx2.Client, url: str, **more: Any) -> str:
    answer = client.post("/parse-requests", json={"url": url}, **more)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["requestId"])


def sign_in(kitchen: Kitchen, browser: httpx2.Client, user: str) -> None:
    """What a page does that keeps its token and its cookies, as seed 001's client does."""
    browser.headers["Authorization"] = kitchen.served.client(user).headers["Authorization"]


def listed(client: httpx2.Client, **parameters: Any) -> list[str]:
    answer = client.get("/parse-requests", params=parameters)
    assert answer.status_code == 200, answer.text
    return [one["requestId"] for one in answer.json()["requests"]]


def remembered(client: httpx2.Client) -> list[UUID]:
    return [UUID(text) for text in (client.cookies.get(GUEST_COOKIE) or "").split(".") if text]


def test_a_request_is_followed_across_signing_in(kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    browser = kitchen.served.client(None)
    request = ask(browser, kitchen.site.url("/soup"))
    sign_in(kitchen, browser, "ada")
    for path in ("/parse-requests", "/api/v1/recipes/parse-requests"):
        assert browser.get(f"{path}/{request}").json()["status"] in ("PENDING", "PROCESSING")
    gate.set()
    assert kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE).finished
    assert browser.get(f"/parse-requests/{request}").json()["recipe"]["title"] == "Tomato soup"
    assert listed(browser) == [request]
    [line] = browser.get("/parse-requests").json()["requests"]
    assert (line["url"], line["status"]) == (kitchen.site.url("/soup"), "COMPLETED")


def test_the_id_alone_is_enough_and_only_the_browser_has_a_list(kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    request = ask(kitchen.served.client(None), kitchen.site.url("/soup"))
    elsewhere = kitchen.served.client("ada")
    assert elsewhere.get(f"/parse-requests/{request}").status_code == 200
    assert listed(elsewhere) == []
    assert elsewhere.get(f"/parse-requests/{uuid4()}").status_code == 404
    gate.set()


def test_sight_is_all_that_is_kept(kitchen: Kitchen) -> None:
    """A guest's request is shared by all guests who ask for the page: nobody makes it their own."""
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    browser = kitchen.served.client(None)
    request = ask(browser, kitchen.site.url("/soup"))
    sign_in(kitchen, browser, "ada")
    assert browser.post(f"/recipes/parse-url/jobs/{request}/cancel").status_code == 404
    assert browser.get(f"/recipes/parse-url/status/{request}").status_code == 404, "the queue has one's own alone"
    gate.set()
    kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE)
    assert browser.post("/recipes", json={"title": "Mine", "parse_job_id": request}).status_code == 404
    assert browser.get("/recipes/parse-url/jobs").json()["jobs"] == []
    assert kitchen.served.client(None).get(f"/parse-requests/{request}").json()["status"] == "COMPLETED"
    own = browser.post("/recipes/parse-url/async", json={"url": kitchen.site.url("/soup")}).json()["id"]
    kitchen.app.jobs.wait(UUID(own), timeout=PATIENCE)
    assert [one["id"] for one in browser.get("/recipes/parse-url/jobs").json()["jobs"]] == [own], "known at once"
    assert kitchen.site.asked["/soup"] == 1


def test_a_users_request_is_nobody_elses_whatever_they_send(kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    ada, key = kitchen.served.client("ada"), {"Idempotency-Key": "k"}
    hers = ask(ada, kitchen.site.url("/soup"), headers=key)
    assert GUEST_COOKIE not in ada.cookies, "who is signed in has no need of it"
    bob = kitchen.served.client_with(
        headers=dict(kitchen.served.client("bob").headers), cookies={GUEST_COOKIE: UUID(hers).hex}
    )
    assert listed(bob) == []
    assert bob.get(f"/parse-requests/{hers}").status_code == 404
    assert kitchen.served.client(None).get(f"/parse-requests/{hers}").status_code == 404
    assert ask(bob, kitchen.site.url("/soup"), headers=key) != hers, "a key that a client chose proves nothing"
    gate.set()


def test_guests_ids_do_not_follow_from_each_other(kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    guest = kitchen.served.client(None)
    for number in range(3):
        kitchen.site.pages[f"/{number}"] = kitchen.site.pages["/soup"]
    requests = [UUID(ask(guest, kitchen.site.url(f"/{number}"))) for number in range(3)]
    assert {request.version for request in requests} == {4}, "122 random bits, and no time"
    gate.set()


def test_own_and_guests_requests_are_one_list(kitchen: Kitchen) -> None:
    browser = kitchen.served.client(None)
    urls = [kitchen.site.page(f"/{number}", PAGES["plain"]) for number in range(5)]
    asked = [ask(browser, url) for url in urls[:3]]
    assert remembered(browser) == [UUID(request) for request in reversed(asked)], "the newest first"
    sign_in(kitchen, browser, "ada")
    asked += [ask(browser, url) for url in urls[3:]]
    assert len(remembered(browser)) == 3
    seen: list[str] = []
    cursor = None
    for _ in range(9):
        parameters: dict[str, Any] = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = browser.get("/parse-requests", params=parameters).json()
        seen += [one["requestId"] for one in page["requests"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == asked[::-1]


def test_a_cookie_from_outside_can_be_anything(kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    request = ask(kitchen.served.client(None), kitchen.site.url("/soup"))
    bearer = kitchen.served.client("ada").headers["Authorization"]
    others = ".".join(uuid4().hex for _ in range(500))
    texts = {"": 0, ".": 0, "nonsense": 0, '"quoted; stuff': 0, f"x.{request}.{request}.é": 1, f"{request}.{others}": 1,
             f"{others}.{request}": 0}  # fmt: skip
    for text, count in texts.items():
        headers = {b"Authorization": bearer.encode(), b"Cookie": f"{GUEST_COOKIE}={text}".encode()}
        answer = kitchen.served.client_with().get("/parse-requests", headers=headers)
        assert answer.status_code == 200, text
        assert [one["requestId"] for one in answer.json()["requests"]] == [request] * count, text
    gate.set()


def test_the_cookie_is_out_of_reach_and_stays_small(kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    old = [uuid4() for _ in range(20)]
    guest = kitchen.served.client_with(cookies={GUEST_COOKIE: ".".join(one.hex for one in old)})
    answer = guest.post("/parse-requests", json={"url": kitchen.site.url("/soup")})
    cookie = SimpleCookie(answer.headers["set-cookie"])[GUEST_COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["max-age"]) == (True, "lax", "/", "")
    ids = [UUID(text) for text in cookie.value.split(".")]
    assert ids == [UUID(answer.json()["requestId"]), *old[:19]], "the oldest is forgotten"
    again = kitchen.served.client_with(cookies={GUEST_COOKIE: cookie.value})
    assert "set-cookie" not in again.post("/parse-requests", json={"url": kitchen.site.url("/soup")}).headers
    gate.set()
