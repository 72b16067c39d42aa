"""The queue's mobile client from submit to a saved recipe and an empty mailbox, also for sites that refuse servers."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from penstock import JobState
from penstock_apps.recipes.addresses import key_of, normalize_url
from penstock_apps.recipes.settings import RecipeSettings
from tests.applications.recipes.conftest import Kitchen
from tests.applications.recipes.mobile_client import MobileClient, Shown, lines
from tests.applications.recipes.pages import HEADINGS, PAGES, SOUP, STEPS, script, soup
from tests.applications.recipes.test_clients import PATIENCE
from tests.http.conftest import on_sqlite

BLOCK = json.dumps(SOUP)
CHALLENGE = "<html><head><title>Just a moment...</title></head><body>Checking your browser</body></html>"


def telephone(kitchen: Kitchen, user: str = "ada") -> MobileClient:
    def wait(job: str) -> None:
        assert kitchen.app.jobs.wait(UUID(job), timeout=PATIENCE).finished

    return MobileClient(kitchen.served.client(user), wait)


def test_a_page_is_imported_looked_over_and_saved(kitchen: Kitchen) -> None:
    ada = telephone(kitchen)
    job = ada.add_page(kitchen.site.page("/soup/", PAGES["plain"]))
    draft = ada.open_import(job)
    assert (draft.title, draft.servings, draft.minutes, draft.steps) == ("Tomato soup", "4", "75", STEPS)
    assert draft.ingredients == [
        ("olive oil", "2", "tablespoon"), ("chopped tomatoes", "1 1/2", "cup"), ("Salt", "", ""),
    ]  # fmt: skip
    saved = ada.save(draft)
    assert ada.mailbox() == []
    assert kitchen.app.jobs.get(UUID(job)).state is JobState.COMMITTED
    assert isinstance(saved["id"], int)
    assert (saved["user_id"], saved["source_type"], saved["parse_job_id"]) == ("ada", "manual", job)
    assert lines(saved) == ["2 tablespoon olive oil", "1 1/2 cup chopped tomatoes", "Salt"]
    assert saved["steps"] == [{"id": n, "step_number": n, "text": text} for n, text in enumerate(STEPS, 1)]
    assert [tag["name"] for tag in saved["tags"]] == ["soup", "Winter", "Italian"]
    assert ada.recipe(saved["id"]) == saved == ada.recipes()[0]
    with pytest.raises(Shown):
        ada.save(draft)
    assert len(ada.recipes()) == 1, "a job is saved once"


def test_a_recipe_of_the_mailbox_is_saved_changed_and_removed(kitchen: Kitchen) -> None:
    ada = telephone(kitchen)
    for path, name in (("/soup", "Tomato soup"), ("/stew", "Stew")):
        ada.poll(ada.add_page(kitchen.site.page(path, script(soup(name=name, recipeYield=None, totalTime=None)))))
    assert [card["preview"]["title"] for card in ada.mailbox()] == ["Stew", "Tomato soup"]
    stew, kept = (ada.open_from_mailbox(card["id"]) for card in ada.mailbox())
    assert (kept.minutes, kept.servings) == ("75", ""), "preparing and cooking; nobody says how many it feeds"
    assert kept.ingredients[1] == ("chopped tomatoes, 400 g", "1 1/2", "cup")
    saved = ada.save(kept)
    assert (saved["servings"], saved["total_time_minutes"], saved["cook_time_minutes"]) == (None, 75, 0)
    ada.discard(stew.job)
    assert ada.mailbox() == []
    with pytest.raises(Shown, match="no longer available"):
        ada.open_from_mailbox(stew.job)
    kept.title, kept.tags, kept.steps = "My soup", ["soup"], STEPS[::-1]
    changed = ada.change(saved["id"], kept)
    assert (changed["id"], changed["title"]) == (saved["id"], "My soup")
    assert [step["text"] for step in changed["steps"]] == STEPS[::-1]
    assert changed["tags"] == saved["tags"][:1], "a tag has the same id in every recipe"
    ada.remove(saved["id"])
    assert ada.recipes() == []
    with pytest.raises(Shown, match="there is no recipe"):
        ada.recipe(saved["id"])


def test_numbers_of_removed_recipes_are_not_given_again(kitchen: Kitchen) -> None:
    http = kitchen.served.client()
    first = http.post("/recipes", json={"title": "Bread"}).json()["id"]
    http.delete(f"/recipes/{first}")
    assert http.post("/recipes", json={"title": "Soup"}).json()["id"] > first


@on_sqlite
@pytest.mark.parametrize(
    ("status", "headers", "text", "code"),
    [
        (403, {}, "", "PAGE_FORBIDDEN"),
        (429, {"Retry_After": "3600"}, "", "PAGE_THROTTLED"),
        (200, {}, CHALLENGE, "PAGE_CHALLENGE"),
    ],
)
def test_a_page_whose_site_refuses_servers_is_opened_by_the_client_and_sent(
    kitchen: Kitchen, status: int, headers: dict[str, str], text: str, code: str
) -> None:
    ada = telephone(kitchen)
    url = kitchen.site.page("/soup/", text, status=status, **headers)
    refused = ada.add_page(url)
    assert ada.must_open_it_here(refused)
    answer = ada.poll(refused)
    assert (answer["next_action"], answer["next_action_reason"]) == ("webview_extract", "blocked_by_site")
    assert (answer["result"]["success"], answer["result"]["error_code"]) == (False, code)
    assert kitchen.app.jobs.get(UUID(refused)).error_code == code
    saved = ada.save(ada.open_import(ada.send_page(url, [BLOCK])))
    assert saved["title"] == "Tomato soup"
    assert ada.mailbox() == []
    assert kitchen.site.asked["/soup/"] == 1, "what is sent is not fetched"


@on_sqlite
def test_other_failures_do_not_ask_to_open_the_page(kitchen: Kitchen) -> None:
    ada = telephone(kitchen)
    for url in (kitchen.site.url("/nowhere"), kitchen.site.page("/news", script({"@type": "NewsArticle"}))):
        answer = ada.poll(ada.add_page(url))
        assert (answer["status"], answer["next_action"], answer["result"]) == ("ERROR", None, None)
        assert answer["error_code"] in ("PAGE_NOT_FOUND", "NOT_A_RECIPE")


@on_sqlite
def test_an_import_is_canceled(kitchen: Kitchen) -> None:
    ada = telephone(kitchen)
    gate = kitchen.site.gate("/slow", PAGES["plain"])
    job = ada.add_page(kitchen.site.url("/slow"))
    ada.cancel(job)
    gate.set()
    assert kitchen.app.jobs.get(UUID(job)).state is JobState.CANCELED
    with pytest.raises(Shown):
        ada.cancel(job)
    with pytest.raises(Shown):
        ada.discard(job)
    bob = telephone(kitchen, "bob")
    for call in (bob.cancel, bob.discard, bob.open_from_mailbox):
        with pytest.raises(Shown, match="there is no"):
            call(job)


# Pages that a client has opened itself --------------------------------------------------------------------------------


@on_sqlite
def test_a_part_of_a_page_is_read_as_well_and_what_is_no_recipe_is_said(kitchen: Kitchen) -> None:
    ada = telephone(kitchen)
    url = "https://kitchen.example/soup/?from=app#steps"
    read = ada.open_import(ada.send_page(url, [], HEADINGS))
    assert read.title == "Tomato soup"
    assert [card["url"] for card in ada.mailbox()] == [url], "the address as it was given"
    with pytest.raises(Shown, match="no recipe"):
        ada.open_import(ada.send_page(url, ["{broken", '{"a": "</script><b>"}'], "<p>Hello</p>"))


def test_the_same_page_sent_twice_is_one_job_and_two_people_get_one_each(kitchen: Kitchen) -> None:
    """The client sends a page when it is loaded, and half a second later once more."""
    ada, bob = telephone(kitchen), telephone(kitchen, "bob")
    url = "https://kitchen.example/soup"
    first, his = ada.send_page(url, [BLOCK]), bob.send_page(url, [BLOCK])
    other = ada.send_page(url, [json.dumps(soup(name="Another soup"))])
    assert ada.send_page(url, [BLOCK]) == first
    assert ada.open_import(first).title == bob.open_import(his).title == "Tomato soup"
    assert ada.open_import(other).title == "Another soup"
    assert ada.send_page(url, [BLOCK]) == first, "also when it has been read"
    assert {card["id"] for card in ada.mailbox()} == {first, other}
    assert [card["id"] for card in bob.mailbox()] == [his]


def test_what_one_person_sends_is_nobody_elses_recipe(kitchen: Kitchen) -> None:
    """Anybody can send anything for an address: it is not kept for who asks for that page."""
    mallory, ada = telephone(kitchen, "mallory"), telephone(kitchen)
    url = kitchen.site.page("/soup", PAGES["plain"])
    sent = mallory.send_page(url, [json.dumps(soup(name="Poison"))])
    assert mallory.open_import(sent).title == "Poison"
    assert kitchen.recipes.repository.latest(key_of(normalize_url(url)), llm_allowed=True) is None
    guest = kitchen.served.client(None)
    request = guest.post("/parse-requests", json={"url": url}).json()["requestId"]
    assert ada.open_import(ada.add_page(url)).title == "Tomato soup"
    kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE)
    assert guest.get(f"/parse-requests/{request}").json()["recipe"]["title"] == "Tomato soup"
    assert kitchen.recipes.find_latest(kitchen.app.jobs.get(UUID(request))) is not None
    assert kitchen.recipes.find_latest(kitchen.app.jobs.get(UUID(sent))) is None, "nor does it once a result is pruned"
    again = mallory.send_page(url, [json.dumps(soup(name="More poison"))])
    assert mallory.open_import(again).title == "More poison", (
        "what is known of a page does not answer for what was sent"
    )


@on_sqlite
def test_what_cannot_be_a_page_is_refused(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()

    def refused(**changes: object) -> tuple[int, str, str | None]:
        page = {"source_type": "client_webview", "source_url": "https://kitchen.example/soup", "jsonld_blocks": [BLOCK]}
        answer = ada.post("/recipes/parse-payload/async", json={"input": page | changes})
        problem = answer.json()
        assert problem["detail"] == problem["message"]
        return answer.status_code, problem["code"], problem["field"]

    assert refused(jsonld_blocks=[], html_snippet=" ") == (422, "PAGE_EMPTY", "input")
    assert refused(jsonld_blocks=None) == (422, "PAGE_EMPTY", "input")
    assert refused(source_url="ftp://kitchen.example") == (422, "URL_INVALID", "url")
    assert refused(source_type="image_upload") == (422, "INVALID_INPUT", "input.source_type")
    assert refused(jsonld_blocks=[1]) == (422, "INVALID_INPUT", "input.jsonld_blocks.0")
    large = kitchen.recipes.settings.fetch_max_bytes
    assert refused(html_snippet="x" * large) == (413, "PAGE_TOO_LARGE", "input")
    assert ada.post("/recipes/parse-payload/async", json={}).status_code == 422
    assert kitchen.served.client(None).post("/recipes/parse-payload/async", json={}).status_code == 401
    assert kitchen.app.jobs.list() == []


class TestWhereOthersParse:
    """With ``RECIPE_PARSED_ELSEWHERE`` nobody else has a page that a client sent: it is read here."""

    @pytest.fixture
    def recipe_settings(self) -> RecipeSettings:
        return RecipeSettings(parsed_elsewhere=True)

    @on_sqlite
    def test_a_page_that_was_sent_is_read_here(self, kitchen: Kitchen) -> None:
        ada = telephone(kitchen)
        job = ada.send_page("https://kitchen.example/soup", [BLOCK])
        assert ada.open_import(job).title == "Tomato soup"
        assert kitchen.app.messages.backlog().unsubscribed == 0, "nobody is told"
