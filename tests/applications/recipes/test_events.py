"""Parsers elsewhere: told of each request once it is recorded, and their words taken once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, update

from penstock import JobState
from penstock.app import Message
from penstock_apps.recipes.addresses import key_of
from penstock_apps.recipes.settings import RecipeSettings
from penstock_apps.recipes.tables import parse_start, resource
from tests.applications.recipes.conftest import Kitchen
from tests.http.conftest import on_sqlite

PATIENCE = 60.0
URL = "https://kitchen.example/soup"
REQUESTS, DEAD = "parse-requests", "parse-results-dead-letters"


@pytest.fixture
def recipe_settings() -> RecipeSettings:
    return RecipeSettings(parsed_elsewhere=True)


@pytest.fixture
def heard(kitchen: Kitchen) -> dict[str, SimpleQueue[Any]]:
    """What was sent, by topic."""
    found: dict[str, SimpleQueue[Any]] = {REQUESTS: SimpleQueue(), DEAD: SimpleQueue()}

    def hear(message: Message) -> None:
        found[message.topic].put(message.payload)

    for topic in found:
        kitchen.app.messages.subscribe(topic)(hear)
    return found


def word(request: str, **changes: Any) -> Message:
    """A parser's word about a request."""
    payload = {
        "requestId": request, "urlHash": key_of(URL), "success": True, "errorMessage": None, "title": "Tomato soup",
        "ingredients": [{"quantity": "2", "unit": "cups", "name": "tomatoes"}],
    }  # fmt: skip
    return Message(str(uuid4()), "parse-results", request, payload | changes, datetime.now(UTC))


def asked(kitchen: Kitchen) -> str:
    answer = kitchen.served.client().post("/parse-requests", json={"url": URL})
    assert (answer.status_code, answer.json()["status"]) == (202, "PENDING")
    return str(answer.json()["requestId"])


def relayed(messages: SimpleQueue[Any], count: int) -> list[Any]:
    """The next messages, once the worker has sent them."""
    return [messages.get(timeout=PATIENCE) for _ in range(count)]


def test_a_request_is_told_once_and_a_word_completes_it(kitchen: Kitchen, heard: dict[str, SimpleQueue[Any]]) -> None:
    request = asked(kitchen)
    asked_again = kitchen.served.client("bob").post("/parse-requests", json={"url": URL}).json()["requestId"]
    assert asked(kitchen) == request, "the same user asks for the same"
    # Held jobs are not followed: each user's request is told of, and waits for its own word.
    told = relayed(heard[REQUESTS], 2)
    assert [one["requestId"] for one in told] == [request, asked_again]
    assert told[0].keys() == {"requestId", "url", "urlHash", "useLlmFallback", "share", "requestedAt"}
    assert {(one["url"], one["urlHash"]) for one in told} == {(URL, key_of(URL))}
    for one in (request, asked_again):
        for _ in range(2):  # a message may come twice
            kitchen.results.take(word(one))
        # One after the other: what is known of the page is what was parsed last.
        assert kitchen.app.jobs.wait(UUID(one), timeout=PATIENCE).state is JobState.SUCCEEDED
    shown = kitchen.served.client().get(f"/parse-requests/{request}").json()
    assert shown["recipe"]["title"] == "Tomato soup"
    assert shown["recipe"]["ingredients"][0]["name"] == "tomatoes"
    at_once = kitchen.served.client(None).post("/parse-requests", json={"url": URL})
    assert (at_once.status_code, at_once.json()["recipe"]["title"]) == (200, "Tomato soup")
    later = kitchen.served.client("bob").get(f"/parse-requests/{asked_again}").json()
    assert at_once.json()["recipe"] == later["recipe"], "parsedAt, too"
    assert heard[REQUESTS].empty()


def test_the_address_is_told_and_kept_as_it_was_given(kitchen: Kitchen, heard: dict[str, SimpleQueue[Any]]) -> None:
    """The first one's spelling is kept for the page; each message has that of its request."""
    ada = kitchen.served.client()
    given = ["https://Kitchen.example/soup/#top", "https://kitchen.example/soup"]
    for client, url in zip((ada, kitchen.served.client("bob")), given, strict=True):
        client.post("/parse-requests", json={"url": f" {url} "})
    told = relayed(heard[REQUESTS], 2)
    assert [(one["url"], one["urlHash"]) for one in told] == [(url, key_of(URL)) for url in given]
    pages = kitchen.app.in_transaction(lambda link: link.execute(select(resource)).all())
    assert [(page.url_hash, page.url) for page in pages] == [(key_of(URL), given[0])]
    assert [one["url"] for one in ada.get("/parse-requests").json()["requests"]] == given[:1]


def test_a_word_of_failure_fails_it_and_the_first_word_counts(kitchen: Kitchen) -> None:
    request = asked(kitchen)
    kitchen.results.take(word(request, success=False, errorMessage="no recipe here"))
    kitchen.results.take(word(request))
    kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE)
    assert kitchen.served.client().get(f"/parse-requests/{request}").json() == {
        "requestId": request, "status": "FAILED", "error": "no recipe here",
    }  # fmt: skip


def test_a_parsers_model_is_not_for_who_refused_one(kitchen: Kitchen, heard: dict[str, SimpleQueue[Any]]) -> None:
    body = {"url": URL, "use_llm_fallback": False}
    refusing = kitchen.served.client().post("/recipes/parse-url/async", json=body).json()["id"]
    [told] = relayed(heard[REQUESTS], 1)
    assert told["useLlmFallback"] is False
    kitchen.results.take(word(refusing, usedLlm=True))
    kitchen.app.jobs.wait(UUID(refusing), timeout=PATIENCE)
    shown = kitchen.served.client().get(f"/recipes/parse-url/status/{refusing}").json()
    assert (shown["status"], shown["error_code"]) == ("ERROR", "PARSE_FAILED")
    assert shown["error_message"] == "the parser asked a language model, which the request refused"
    known = kitchen.served.client(None).post("/parse-requests", json={"url": URL})
    assert (known.status_code, known.json()["recipe"]["title"]) == (200, "Tomato soup"), "it is for those who allow one"
    assert kitchen.recipes.find_known(URL, use_llm_fallback=False) is None


def test_a_word_about_a_canceled_request_changes_nothing(kitchen: Kitchen) -> None:
    request = asked(kitchen)
    kitchen.app.jobs.cancel(UUID(request), reason="not hungry any more")
    kitchen.results.take(word(request))
    assert kitchen.app.jobs.get(UUID(request)).state is JobState.CANCELED
    assert kitchen.recipes.find_known(URL) is None, "and is not kept"


def test_what_cannot_be_taken_is_put_aside_and_stops_nothing(
    kitchen: Kitchen, heard: dict[str, SimpleQueue[Any]]
) -> None:
    request = asked(kitchen)
    wrong = [
        word(str(uuid4())).payload,
        word(request, urlHash=key_of("https://elsewhere.example")).payload,
        word(request, urlHash="short").payload,
        word(request, success="perhaps").payload,
        word("not an id").payload,
        begun(request, status="FINISHED").payload,
        begun(str(uuid4())).payload,
        ["a", "list"],
        None,
    ]
    for payload in wrong:
        kitchen.app.messages.publish("parse-results", payload, key=request)
    kitchen.app.messages.publish("parse-results", word(request).payload, key=request)
    dead = relayed(heard[DEAD], len(wrong))
    assert [one["message"] for one in dead] == wrong
    assert [one["reason"].partition(":")[0] for one in dead] == [
        "there is no such request", "it is about another page than its request", *["it cannot be read"] * 4,
        "there is no such request", *["it cannot be read"] * 2,
    ]  # fmt: skip
    assert kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE).state is JobState.SUCCEEDED


def begun(request: str, **changes: Any) -> Message:
    """A parser's word that it begins."""
    payload = {"requestId": request, "urlHash": key_of(URL), "status": "PROCESSING"}
    return Message(str(uuid4()), "parse-results", key_of(URL), payload | changes, datetime.now(UTC))


def statuses(kitchen: Kitchen, request: str) -> list[str]:
    """How a request stands, wherever it is shown."""
    client = kitchen.served.client()
    shown = [
        client.get(f"/parse-requests/{request}").json()["status"],
        client.get("/parse-requests").json()["requests"][0]["status"],
        client.get(f"/recipes/parse-url/status/{request}").json()["status"],
    ]
    again = client.post("/parse-requests", json={"url": URL}).json()
    return [*shown, again["status"]]


def test_a_request_that_a_parser_has_begun_with_is_processing(kitchen: Kitchen) -> None:
    request = asked(kitchen)
    assert statuses(kitchen, request) == ["PENDING", "PENDING", "PENDING", "PENDING"]
    kitchen.results.take(begun(request))
    assert statuses(kitchen, request) == ["PROCESSING", "PROCESSING", "RUNNING", "PROCESSING"]
    kitchen.results.take(word(request))
    assert kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE).state is JobState.SUCCEEDED
    kitchen.results.take(begun(request))
    assert kitchen.served.client().get(f"/parse-requests/{request}").json()["status"] == "COMPLETED", "it came late"


def test_a_message_has_its_effect_once_by_its_id(kitchen: Kitchen) -> None:
    """The start comes again after the failure that ended the request: it must not look as if somebody were at it."""
    request = asked(kitchen)
    start = begun(request)
    kitchen.results.take(start)
    kitchen.results.take(word(request, success=False, errorMessage="no recipe here"))
    kitchen.results.take(start)
    kitchen.app.jobs.wait(UUID(request), timeout=PATIENCE)
    assert kitchen.recipes.repository.find_started([UUID(request)]) == set()


def let_time_pass(kitchen: Kitchen) -> None:
    """All parsers have begun long ago."""
    long_ago = datetime.now(UTC) - timedelta(minutes=kitchen.recipes.settings.stale_minutes + 1)
    kitchen.app.in_transaction(lambda link: link.execute(update(parse_start).values(started_at=long_ago)))


def test_who_begins_and_never_answers_is_not_waited_for(kitchen: Kitchen) -> None:
    pending, answer = asked(kitchen), kitchen.served.client("bob").post("/parse-requests", json={"url": URL})
    begun_with = str(answer.json()["requestId"])
    kitchen.results.take(begun(begun_with))
    kitchen.app.system.sweep()
    assert kitchen.app.jobs.get(UUID(begun_with)).state is JobState.CREATED, "it has only just begun"
    let_time_pass(kitchen)
    kitchen.app.system.sweep()
    job = kitchen.app.jobs.wait(UUID(begun_with), timeout=PATIENCE)
    assert (job.state, job.error_code) == (JobState.FAILED, "PARSE_FAILED")
    assert job.last_error == "the parser has begun, and not answered within 15 minutes"
    assert kitchen.app.jobs.get(UUID(pending)).state is JobState.CREATED, "it waits for the broker"
    kitchen.results.take(word(begun_with))
    assert kitchen.app.jobs.get(UUID(begun_with)).state is JobState.FAILED, "the first answer counts"


def test_a_canceled_request_is_not_looked_for_again(kitchen: Kitchen) -> None:
    request = asked(kitchen)
    kitchen.results.take(begun(request))
    kitchen.app.jobs.cancel(UUID(request), reason="not hungry any more")
    let_time_pass(kitchen)
    kitchen.app.system.sweep()
    assert kitchen.app.jobs.get(UUID(request)).state is JobState.CANCELED
    assert kitchen.recipes.repository.stale_starts(datetime.now(UTC)) == []


class TestWherePagesAreParsedHere:
    """Nobody else reads of requests then: a message would wait for nobody."""

    @pytest.fixture
    def recipe_settings(self) -> RecipeSettings:
        return RecipeSettings()

    @on_sqlite
    def test_nobody_is_told_of_a_request(self, kitchen: Kitchen) -> None:
        kitchen.served.client().post("/parse-requests", json={"url": kitchen.site.url("/soup")})
        assert kitchen.app.messages.backlog().waiting == 0
