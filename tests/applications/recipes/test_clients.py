"""Two real clients' sequences of calls, and every answer of both specifications."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from penstock import JobState
from penstock_apps.recipes.addresses import key_of
from penstock_apps.recipes.kinds import RECIPE
from tests.applications.recipes.conftest import Kitchen
from tests.applications.recipes.pages import PAGES, script, soup

PATIENCE = 60.0


def status(client: httpx2.Client, job: str) -> dict[str, Any]:
    answer = client.get(f"/recipes/parse-url/status/{job}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def asked(client: httpx2.Client, url: str, **more: Any) -> str:
    """Ask for a page as the queue's client does; the answer is the job."""
    answer = client.post("/recipes/parse-url/async", json={"url": url, **more})
    assert answer.status_code == 202, answer.text
    assert answer.json()["status"] in ("PENDING", "RUNNING")
    return str(answer.json()["id"])


def finished(kitchen: Kitchen, job: str) -> None:
    assert kitchen.app.jobs.wait(UUID(job), timeout=PATIENCE).finished


def mailbox(client: httpx2.Client, **asked_for: Any) -> list[dict[str, Any]]:
    answer = client.get("/recipes/parse-url/jobs", params=asked_for)
    assert answer.status_code == 200, answer.text
    jobs: list[dict[str, Any]] = answer.json()["jobs"]
    return jobs


def test_submit_poll_open_from_the_mailbox_save_and_see_it_leave(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    url = f"{kitchen.site.page('/soup/', PAGES['plain'])}#top"
    job = asked(ada, url)
    finished(kitchen, job)
    shown = status(ada, job)
    assert (shown["id"], shown["status"], shown["error_code"], shown["error_message"]) == (job, "COMPLETE", None, None)
    result = shown["result"]
    assert (result["success"], result["used_llm"], result["parser_strategy"]) == (True, False, "schema_org_json_ld")
    [card] = mailbox(ada)
    assert card == {
        "id": job, "job_type": "url", "url": url, "status": "COMPLETE", "completed_at": card["completed_at"],
        "expires_at": card["expires_at"], "warnings": [],
        "preview": {"title": "Tomato soup", "source_host": "127.0.0.1"},
    }  # fmt: skip
    completed_at = datetime.fromisoformat(card["completed_at"])
    assert completed_at.tzinfo is not None
    assert datetime.fromisoformat(card["expires_at"]) == completed_at + timedelta(days=3)
    body = {name: result["recipe"][name] for name in ("title", "description", "ingredients", "steps", "servings")}
    saved = ada.post("/recipes", json={**body, "parse_job_id": job})
    assert saved.status_code == 201, saved.text
    assert (saved.json()["title"], saved.json()["parse_job_id"]) == ("Tomato soup", job)
    assert mailbox(ada) == []
    assert status(ada, job)["status"] == "COMMITTED"
    again = ada.post("/recipes", json={**body, "parse_job_id": job})
    assert (again.status_code, again.json()["code"]) == (409, "TRANSITION_REFUSED")
    assert again.json()["message"] == f"job {job} is COMMITTED: it can only be saved while it is COMPLETE"
    dismissed = ada.post(f"/recipes/parse-url/jobs/{job}/abandon")
    assert dismissed.json()["message"] == f"job {job} is COMMITTED: it can only be dismissed while it is COMPLETE"
    assert len(ada.get("/recipes").json()) == 1, "a refused commit saves nothing"


def test_submit_poll_every_second_read_the_recipe_and_get_it_at_once(kitchen: Kitchen) -> None:
    guest = kitchen.served.client(None)
    url = kitchen.site.page("/soup", PAGES["plain"])
    first = guest.post("/parse-requests", json={"url": url})
    assert first.status_code == 202
    assert first.json().keys() == {"requestId", "status"}
    request = first.json()["requestId"]
    finished(kitchen, request)
    done = guest.get(f"/parse-requests/{request}").json()
    assert (done["requestId"], done["status"]) == (request, "COMPLETED")
    assert done["recipe"].keys() == {"urlHash", "title", "ingredients", "parsedAt"}
    assert done["recipe"]["urlHash"] == key_of(url)
    again = guest.post("/parse-requests", json={"url": url.upper().replace("/SOUP", "/soup")})
    assert (again.status_code, again.json().keys()) == (200, {"recipe"})
    assert again.json()["recipe"] == done["recipe"], "parsedAt, too: the page was read once"
    assert datetime.fromisoformat(done["recipe"]["parsedAt"]).tzinfo is not None
    assert [as_a_line(ingredient) for ingredient in done["recipe"]["ingredients"]] == [
        "2 tablespoon olive oil", "1 1/2 cup chopped tomatoes", "Salt",
    ]  # fmt: skip
    ada = kitchen.served.client()
    job = asked(ada, url)
    finished(kitchen, job)
    assert ada.get(f"/parse-requests/{job}").json()["recipe"] == done["recipe"], "a job that ended with what was known"
    assert kitchen.site.asked["/soup"] == 1
    old = guest.post("/api/v1/recipes/parse", json={"url": url})
    assert (old.status_code, old.json()["status"], old.json()["recipe"]["title"]) == (200, "COMPLETED", "Tomato soup")
    assert guest.get(f"/api/v1/recipes/parse-requests/{request}").json() == done


def as_a_line(ingredient: dict[str, Any]) -> str:
    """An ingredient as the web client writes it: it trims the quantity, which a number does not survive."""
    quantity, unit, name = (ingredient.get(part) for part in ("quantity", "unit", "name"))
    assert quantity is None or isinstance(quantity, str)
    return " ".join(part.strip() for part in (quantity, unit, name) if part)


def test_what_cannot_be_parsed_fails_and_a_retry_is_a_new_request(kitchen: Kitchen) -> None:
    ada, guest = kitchen.served.client(), kitchen.served.client(None)
    url = kitchen.site.page("/news", script({"@type": "NewsArticle"}))
    job = asked(ada, url, use_llm_fallback=False)
    finished(kitchen, job)
    shown = status(ada, job)
    assert (shown["status"], shown["result"], shown["error_code"]) == ("ERROR", None, "NOT_A_RECIPE")
    assert shown["error_message"] == "no recipe was found on the page"
    assert mailbox(ada, status="ERROR", include_expired=True)[0]["id"] == job
    request = guest.post("/parse-requests", json={"url": url}).json()["requestId"]
    assert request != job
    finished(kitchen, request)
    assert guest.get(f"/parse-requests/{request}").json() == {
        "requestId": request, "status": "FAILED", "error": "no recipe was found on the page",
    }  # fmt: skip
    kitchen.site.page("/news", script(soup(name="Soup after all")))
    retried = guest.post("/parse-requests", json={"url": url}).json()["requestId"]
    finished(kitchen, retried)
    assert guest.get(f"/parse-requests/{retried}").json()["recipe"]["title"] == "Soup after all"


def test_a_page_in_flight_is_fetched_once_for_everybody(kitchen: Kitchen) -> None:
    ada, bob, guest, other = (kitchen.served.client(name) for name in ("ada", "bob", None, None))
    url = kitchen.site.url("/slow")
    gate = kitchen.site.gate("/slow", PAGES["plain"])
    mine, his = asked(ada, url), asked(bob, url)
    theirs = guest.post("/parse-requests", json={"url": url}).json()["requestId"]
    assert other.post("/parse-requests", json={"url": url}).json()["requestId"] == theirs, "guests share a request"
    assert asked(ada, url) == mine, "one's own request in flight is the answer"
    assert len({mine, his, theirs}) == 3
    for somebody, strange in ((ada, his), (bob, mine), (ada, theirs)):
        assert somebody.get(f"/recipes/parse-url/status/{strange}").status_code == 404
    assert guest.get(f"/parse-requests/{mine}").status_code == 404
    gate.set()
    for job in (mine, his, theirs):
        finished(kitchen, job)
        assert kitchen.app.jobs.get(UUID(job)).state is JobState.SUCCEEDED
    assert kitchen.site.asked["/slow"] == 1


def test_cancel_is_for_what_has_not_ended_and_others_are_served_all_the_same(kitchen: Kitchen) -> None:
    ada, bob = kitchen.served.client(), kitchen.served.client("bob")
    url = kitchen.site.url("/slow")
    gate = kitchen.site.gate("/slow", PAGES["plain"])
    mine, his = asked(ada, url), asked(bob, url)
    canceled = ada.post(f"/recipes/parse-url/jobs/{mine}/cancel")
    assert (canceled.status_code, canceled.json()) == (200, {"id": mine, "status": "CANCELED"})
    gate.set()
    finished(kitchen, his)
    assert status(bob, his)["status"] == "COMPLETE"
    assert status(ada, mine) == {
        "id": mine, "status": "CANCELED", "result": None, "error_code": None, "error_message": None,
        "next_action": None, "next_action_reason": None,
    }  # fmt: skip
    for somebody, job, code in ((ada, mine, 409), (bob, his, 409), (ada, his, 404), (ada, str(uuid4()), 404)):
        refused = somebody.post(f"/recipes/parse-url/jobs/{job}/cancel")
        assert refused.status_code == code
        assert refused.json()["message"] == refused.json()["detail"]
        if code == 409:
            state = status(somebody, job)["status"]
            words = f"job {job} is {state}: it can only be canceled while it is PENDING or RUNNING"
            assert refused.json()["message"] == words


def test_the_mailbox_has_its_filters_and_its_defaults(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    jobs = []
    for number in range(3):
        jobs.append(asked(ada, kitchen.site.page(f"/{number}", script(soup(name=f"Soup {number}")))))
        finished(kitchen, jobs[-1])
    assert [one["preview"]["title"] for one in mailbox(ada)] == ["Soup 2", "Soup 1", "Soup 0"]
    assert len(mailbox(ada, limit=2)) == 2
    kitchen.app.in_transaction(lambda link: aged(link, jobs[0]))
    assert [one["id"] for one in mailbox(ada)] == [jobs[2], jobs[1]]
    assert [one["id"] for one in mailbox(ada, include_expired=True)] == [jobs[2], jobs[1], jobs[0]]
    assert mailbox(ada, status="CANCELED") == []
    assert kitchen.served.client("bob").get("/recipes/parse-url/jobs").json() == {"jobs": [], "next": None}
    assert ada.get("/recipes/parse-url/jobs", params={"status": "DONE"}).status_code == 422
    kitchen.app.system.sweep()
    assert status(ada, jobs[0])["status"] == "ABANDONED"
    assert [one["id"] for one in mailbox(ada, status="ABANDONED", include_expired=True)] == [jobs[0]]


def test_a_long_mailbox_is_read_page_by_page(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    url = kitchen.site.page("/soup", PAGES["plain"])
    jobs = []
    for _ in range(5):
        jobs.append(asked(ada, url))
        finished(kitchen, jobs[-1])
    kitchen.app.in_transaction(lambda link: aged(link, jobs[2]))
    seen: list[str] = []
    cursor = None
    for _ in range(9):
        parameters: dict[str, Any] = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = ada.get("/recipes/parse-url/jobs", params=parameters).json()
        seen += [one["id"] for one in page["jobs"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [jobs[4], jobs[3], jobs[1], jobs[0]], "one of a time that is over is passed over"
    assert ada.get("/recipes/parse-url/jobs", params={"cursor": "nonsense"}).status_code == 422


def test_what_not_every_database_keeps_is_refused_by_all(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    job = asked(ada, kitchen.site.page("/soup", PAGES["plain"]))
    finished(kitchen, job)
    wrong: list[dict[str, Any]] = [
        {"title": "So\0up", "parse_job_id": job},
        {"title": "Soup", "description": "\0", "parse_job_id": job},
        {"title": "Soup", "steps": ["Warm.", "St\0ir."]},
        {"title": "Soup", "ingredients": [{"text": "1 pe\0a"}]},
        {"title": "Soup", "tags": ["\0"]},
    ]
    for body, field in zip(wrong, ("title", "description", "steps", "ingredients", "tags"), strict=True):
        answer = ada.post("/recipes", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "PAYLOAD_NOT_STORABLE"), body
        assert (answer.json()["field"], "NUL" in answer.json()["message"]) == (field, True)
    assert status(ada, job)["status"] == "COMPLETE"
    saved = ada.post("/recipes", json={"title": "Soup", "parse_job_id": job}).json()
    changed = ada.patch(f"/recipes/{saved['id']}", json={"description": "a\0b"})
    assert (changed.status_code, changed.json()["field"]) == (422, "description")


def aged(link: Any, job: str) -> None:
    """Let a job have ended four days ago."""
    from penstock.store.tables import jobs

    moment = datetime.now(UTC) - timedelta(days=4)
    link.execute(jobs.update().where(jobs.c.id == UUID(job)).values(completed_at=moment))


def test_a_failed_save_leaves_the_job_complete(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, bob = kitchen.served.client(), kitchen.served.client("bob")
    job = asked(ada, kitchen.site.page("/soup", PAGES["plain"]))
    finished(kitchen, job)
    assert ada.post("/recipes", json={"title": "", "parse_job_id": job}).status_code == 422
    assert bob.post("/recipes", json={"title": "Mine", "parse_job_id": job}).status_code == 404

    def broken(*_: Any) -> None:
        raise RuntimeError("the disk is on fire")

    with monkeypatch.context() as patched:
        patched.setattr(kitchen.recipes.repository, "save", broken)
        unlucky = kitchen.served.client()  # whose connection is closed after that
        assert unlucky.post("/recipes", json={"title": "Mine", "parse_job_id": job}).status_code == 500
    assert status(ada, job)["status"] == "COMPLETE"
    assert ada.get("/recipes").json() == []


def test_saved_recipes_are_read_changed_and_removed_by_their_owner_alone(kitchen: Kitchen) -> None:
    ada, bob = kitchen.served.client(), kitchen.served.client("bob")
    made = ada.post("/recipes", json={"title": "Bread", "ingredients": ["500 g flour"], "tags": ["basic"]}).json()
    address = f"/recipes/{made['id']}"
    assert ada.get(address).json() == made == ada.get(f"/recipes/{made['uuid']}").json()
    flour = {"id": 1, "text": "500 g flour", "quantity_display": None, "unit": None}
    assert (made["ingredients"], made["steps"], made["parse_job_id"]) == ([flour], [], None)
    changed = ada.patch(address, json={"title": "Good bread", "tags": None, "steps": ["Bake."]}).json()
    assert (changed["title"], changed["tags"], changed["steps"], changed["ingredients"]) == (
        "Good bread", [], [{"id": 1, "step_number": 1, "text": "Bake."}], [flour],
    )  # fmt: skip
    assert ada.patch(address, json={"title": None}).status_code == 422
    assert ada.patch(address, json={"no_such": 1}).json()["title"] == "Good bread", "what is not known is ignored"
    for method in ("GET", "PATCH", "DELETE"):
        theirs = bob.request(method, address, json={} if method == "PATCH" else None)
        assert (theirs.status_code, theirs.json()["code"]) == (404, "RECIPE_NOT_FOUND"), method
    for number in range(3):
        ada.post("/recipes", json={"title": f"Soup {number}"})
    first = ada.get("/recipes", params={"limit": 2})
    second = ada.get(first.links["next"]["url"])
    assert [one["title"] for one in (*first.json(), *second.json())] == ["Soup 2", "Soup 1", "Soup 0", "Good bread"]
    assert "link" not in second.headers
    assert len(ada.get("/recipes").json()) == 4, "without a limit it is all of them"
    assert ada.get("/recipes", params={"cursor": "nonsense"}).status_code == 422
    for nowhere in (0, 2**63 - 1, uuid4()):
        assert ada.get(f"/recipes/{nowhere}").status_code == 404
    for nonsense in ("soup", 2**63, -1):
        assert ada.get(f"/recipes/{nonsense}").status_code == 422
    assert ada.delete(address).status_code == 204
    assert ada.delete(address).status_code == 404


def test_a_user_sees_the_history_of_their_requests(kitchen: Kitchen) -> None:
    ada, guest = kitchen.served.client(), kitchen.served.client(None)
    urls = [kitchen.site.page(f"/{number}", PAGES["plain"]) for number in range(3)]
    for url in urls:
        finished(kitchen, ada.post("/parse-requests", json={"url": url}).json()["requestId"])
    first = ada.get("/parse-requests", params={"limit": 2}).json()
    assert [one["url"] for one in first["requests"]] == [urls[2], urls[1]]
    assert first["requests"][0].keys() == {"requestId", "url", "status", "createdAt", "error"}
    second = ada.get("/parse-requests", params={"limit": 2, "cursor": first["next"]}).json()
    assert ([one["url"] for one in second["requests"]], second["next"]) == ([urls[0]], None)
    assert guest.get("/parse-requests").status_code == 401
    assert ada.get("/parse-requests", params={"cursor": "nonsense"}).status_code == 422


def test_what_is_not_there_and_what_is_wrong(kitchen: Kitchen) -> None:
    ada, guest = kitchen.served.client(), kitchen.served.client(None)
    for path in ("/parse-requests", "/api/v1/recipes/parse-requests"):
        missing = guest.get(f"{path}/{uuid4()}")
        assert (missing.status_code, missing.json()["error"]) == (404, "Request not found")
    for path, body in (("/parse-requests", {"url": "nonsense"}), ("/recipes/parse-url/async", {"url": "ftp://x"})):
        wrong = ada.post(path, json=body)
        assert (wrong.status_code, wrong.json()["code"], wrong.json()["field"]) == (422, "URL_INVALID", "url")
    assert guest.post("/recipes/parse-url/async", json={"url": "https://example.com"}).status_code == 401
    job = asked(ada, "http://169.254.169.254/latest/meta-data")
    finished(kitchen, job)
    assert status(ada, job)["error_code"] == "HOST_REFUSED"
    assert not kitchen.app.jobs.list(kind=RECIPE, states=[JobState.RUNNING])


def test_the_same_key_gives_the_same_job(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    url = kitchen.site.page("/soup", PAGES["plain"])
    ids = set()
    for _ in range(2):
        answer = ada.post("/recipes/parse-url/async", json={"url": url}, headers={"Idempotency-Key": "k"})
        ids.add(answer.json()["id"])
        finished(kitchen, answer.json()["id"])
    assert len(ids) == 1


def test_nul_and_broken_unicode_in_a_page_do_not_keep_its_recipe_from_anybody(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    # As JSON escapes, which reading the JSON turns into the characters themselves; a trailing comma as many have.
    text = json.dumps(soup(name="Tom\0ato \ud800soup", recipeYield="4\0", image="/a\0.jpg"))[:-1] + ",}"
    urls = [
        kitchen.site.page("/escaped", script(text)),
        kitchen.site.page("/raw", PAGES["plain"].replace("Red", "R\0ed")),
    ]
    jobs = [asked(ada, url) for url in urls]
    for job in jobs:
        finished(kitchen, job)
    shown = [status(ada, job) for job in jobs]
    assert [one["status"] for one in shown] == ["COMPLETE", "COMPLETE"], shown
    assert shown[0]["result"]["recipe"]["title"] == "Tom\ufffdato \ufffdsoup"
    assert all("\0" not in str(one) for one in shown)


def test_the_same_key_with_another_page_is_refused(kitchen: Kitchen) -> None:
    ada, guest = kitchen.served.client(), kitchen.served.client(None)
    soup, stew = kitchen.site.page("/soup", PAGES["plain"]), kitchen.site.page("/stew", PAGES["plain"])
    for client, address in ((ada, "/recipes/parse-url/async"), (guest, "/parse-requests")):
        key = {"Idempotency-Key": address}
        assert client.post(address, json={"url": soup}, headers=key).status_code == 202
        other = client.post(address, json={"url": stew}, headers=key)
        assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_a_key_whose_answer_was_a_known_recipe_is_taken_too(kitchen: Kitchen) -> None:
    guest = kitchen.served.client(None)
    soup, stew = kitchen.site.page("/soup", PAGES["plain"]), kitchen.site.page("/stew", PAGES["plain"])
    finished(kitchen, guest.post("/parse-requests", json={"url": soup}).json()["requestId"])
    key = {"Idempotency-Key": "k"}
    assert guest.post("/parse-requests", json={"url": soup}, headers=key).json()["recipe"]
    other = guest.post("/parse-requests", json={"url": stew}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
