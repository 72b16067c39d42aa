"""How often guests and users may ask: looking is not asking, and what is known already counts less than new work."""

from __future__ import annotations

from uuid import uuid4

import httpx2
import pytest

from penstock.http.limits import RateLimit
from penstock.http.service import Service
from tests.applications.recipes.conftest import Kitchen
from tests.applications.recipes.pages import PAGES
from tests.applications.recipes.test_clients import finished
from tests.http.conftest import on_sqlite

pytestmark = on_sqlite
ALLOWED = 3
LOOKS = 70
TENTHS = 8


@pytest.fixture
def service(kitchen: Kitchen) -> Service:
    """What the server counts with: a few requests, and time stands still."""
    service: Service = kitchen.served.server.config.app.state.penstock  # type: ignore[union-attr]
    service.guest_requests = RateLimit(ALLOWED, "requests", now=lambda: 0.0)
    service.submissions = RateLimit(ALLOWED, "submissions", now=lambda: 0.0)
    return service


def ask(client: httpx2.Client, url: str, path: str = "/parse-requests", **headers: str) -> httpx2.Response:
    """Ask for a page."""
    return client.post(path, json={"url": url}, headers=headers)


def asks_left(client: httpx2.Client, kitchen: Kitchen, path: str = "/parse-requests") -> int:
    """How many new pages may still be asked for."""
    for count in range(ALLOWED + 1):
        answer = ask(client, kitchen.site.page(f"/new/{uuid4()}", PAGES["plain"]), path)
        if answer.status_code == 429:
            assert answer.json()["code"] == "TOO_MANY_REQUESTS"
            assert int(answer.headers["retry-after"]) >= 1
            return count
    raise AssertionError("there is no limit")


def test_a_guest_who_looks_every_second_can_still_ask(kitchen: Kitchen, service: Service) -> None:
    guest = kitchen.served.client(None)
    request = ask(guest, kitchen.site.page("/soup", PAGES["plain"])).json()["requestId"]
    for path in ("/parse-requests", "/api/v1/recipes/parse-requests"):
        assert {guest.get(f"{path}/{request}").status_code for _ in range(LOOKS)} == {200}
    assert asks_left(guest, kitchen) == ALLOWED - 1


def test_looking_has_a_limit_of_its_own(kitchen: Kitchen, service: Service) -> None:
    guest, ada = kitchen.served.client(None), kitchen.served.client()
    url = kitchen.site.page("/soup", PAGES["plain"])
    request = ask(guest, url).json()["requestId"]
    service.guest_reads = RateLimit(2, "requests", now=lambda: 0.0)
    assert [guest.get(f"/parse-requests/{request}").status_code for _ in range(3)] == [200, 200, 429]
    assert {ada.get(f"/parse-requests/{request}").status_code for _ in range(LOOKS)} == {200}, "users are not counted"
    assert asks_left(guest, kitchen) == ALLOWED - 1


@pytest.mark.parametrize("user", [None, "ada"])
def test_what_is_under_way_or_known_counts_a_tenth(kitchen: Kitchen, service: Service, user: str | None) -> None:
    client = kitchen.served.client(user)
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    url = kitchen.site.url("/soup")
    first = ask(client, url)
    again = [ask(client, url) for _ in range(TENTHS // 2)]
    assert {answer.json()["requestId"] for answer in again} == {first.json()["requestId"]}, "it is under way"
    gate.set()
    finished(kitchen, first.json()["requestId"])
    known = [ask(client, url) for _ in range(TENTHS // 2)]
    assert {answer.status_code for answer in known} == {200}
    assert asks_left(client, kitchen) == ALLOWED - 2, "one for the work, and one for all the others"


def test_the_same_key_again_counts_a_tenth(kitchen: Kitchen, service: Service) -> None:
    ada = kitchen.served.client()
    gate = kitchen.site.gate("/soup", PAGES["plain"])
    url = kitchen.site.url("/soup")
    answers = [ask(ada, url, "/recipes/parse-url/async", **{"Idempotency-Key": "k"}) for _ in range(1 + TENTHS)]
    assert len({answer.json()["id"] for answer in answers}) == 1
    gate.set()
    assert asks_left(ada, kitchen, "/recipes/parse-url/async") == ALLOWED - 2


def test_users_are_counted_also_where_guests_may_ask(kitchen: Kitchen, service: Service) -> None:
    assert asks_left(kitchen.served.client(), kitchen) == ALLOWED
    assert asks_left(kitchen.served.client("bob"), kitchen) == ALLOWED, "each for themselves"
    assert asks_left(kitchen.served.client(None), kitchen, "/api/v1/recipes/parse") == ALLOWED


def test_a_request_that_was_wrong_counts_whole(kitchen: Kitchen, service: Service) -> None:
    guest = kitchen.served.client(None)
    assert ask(guest, "ftp://nowhere").status_code == 422
    assert asks_left(guest, kitchen) == ALLOWED - 1
