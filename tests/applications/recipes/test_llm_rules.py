"""May a language model be asked? That is said with each request, and decides which answers it is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest

from penstock import load_settings
from penstock_apps.recipes.addresses import key_of
from penstock_apps.recipes.kinds import RECIPE
from penstock_apps.recipes.payloads import RecipeResult, work_key
from penstock_apps.recipes.settings import RecipeSettings
from tests.applications.recipes.conftest import Kitchen, open_kitchen
from tests.applications.recipes.pages import ADDRESS, PAGES, SOUP, WITHOUT_STEPS, script, soup
from tests.applications.recipes.readers import recipe_of
from tests.applications.recipes.site import Site, open_site
from tests.conformance.databases import chosen_databases, database_named
from tests.http.conftest import SECRET

PATIENCE = 60.0
TALE = "<html><body><p>Take two tablespoons of oil.</p><p>Warm them.</p></body></html>"
MODEL = "/v1/chat/completions"
NOT_ASKED = "The language model could not be asked; this is what the page says itself."


class Model:
    """A language model on the site, which says what a test wants."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.says(SOUP)
        site.asked[MODEL] = 0

    def says(self, recipe: Any, *, status: int = 200) -> None:
        text = json.dumps({"choices": [{"message": {"role": "assistant", "content": json.dumps(recipe)}}]})
        self._site.page(MODEL, text, status=status, Content_Type="application/json")

    @property
    def asked(self) -> int:
        return self._site.asked[MODEL]


@pytest.fixture(scope="module", params=[database.name for database in chosen_databases() if database.is_shared])
def kitchen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kitchen]:
    """One for all tests of a database, with a model: a process takes a second until it can read what is hard to read.

    Each test has pages of its own.
    """
    folder = tmp_path_factory.mktemp("kitchen")
    with ExitStack() as stack:
        url = stack.enter_context(database_named(request.param).copy(request, folder))
        site = stack.enter_context(open_site())
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setenv("PENSTOCK_FETCH_ALLOW_HOSTS", site.host)
        environment.setenv("PENSTOCK_LLM_URL", site.url("/v1"))
        environment.setenv("PENSTOCK_LLM_MODEL", "a-model")
        settings = load_settings(database_url=url, files_directory=folder / "files", jwt_secret=SECRET)
        yield stack.enter_context(open_kitchen(settings, site, RecipeSettings()))


@pytest.fixture
def model(kitchen: Kitchen) -> Model:
    """The model that an operator has named, as if nobody had asked it yet."""
    return Model(kitchen.site)


def ask(kitchen: Kitchen, user: str, url: str, *, allows: bool) -> str:
    body = {"url": url, "use_llm_fallback": allows}
    answer = kitchen.served.client(user).post("/recipes/parse-url/async", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def ended(kitchen: Kitchen, user: str, job: str) -> dict[str, Any]:
    """How a job ended, as its owner sees it."""
    assert kitchen.app.jobs.wait(UUID(job), timeout=PATIENCE).finished
    shown: dict[str, Any] = kitchen.served.client(user).get(f"/recipes/parse-url/status/{job}").json()
    return shown


def outcome(kitchen: Kitchen, user: str, url: str, *, allows: bool) -> tuple[str, str]:
    """The status of a new request, and by which way, or for which reason."""
    shown = ended(kitchen, user, ask(kitchen, user, url, allows=allows))
    return shown["status"], shown["error_code"] or shown["result"]["parser_strategy"]


def guest(kitchen: Kitchen, url: str) -> httpx2.Response:
    return kitchen.served.client(None).post("/parse-requests", json={"url": url})


def test_what_a_model_made_is_not_given_to_who_refused_it(model: Model, kitchen: Kitchen) -> None:
    url = kitchen.site.page("/tale/1", TALE)
    assert outcome(kitchen, "ada", url, allows=True) == ("COMPLETE", "llm")
    assert outcome(kitchen, "bob", url, allows=False) == ("ERROR", "NOT_A_RECIPE")
    assert (kitchen.site.asked["/tale/1"], model.asked) == (2, 1)
    assert outcome(kitchen, "cleo", url, allows=True) == ("COMPLETE", "llm"), "bob's failure is bob's"
    assert guest(kitchen, url).status_code == 200
    assert (kitchen.site.asked["/tale/1"], model.asked) == (2, 1), "what is known is not asked for again"


def test_who_refuses_and_who_allows_do_not_follow_each_other(model: Model, kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/tale/2", TALE)
    url = kitchen.site.url("/tale/2")
    refusing, allowing = ask(kitchen, "ada", url, allows=False), ask(kitchen, "bob", url, allows=True)
    same = {user: ask(kitchen, user, url, allows=user == "cleo") for user in ("cleo", "dora")}
    second = ask(kitchen, "ada", url, allows=True)
    assert second != refusing, "a request of its own, though ada has one for the page"
    assert ask(kitchen, "ada", url, allows=False) == refusing
    leaders = {name: kitchen.app.jobs.get(UUID(job)).leader_id for name, job in same.items()}
    assert leaders == {"cleo": UUID(allowing), "dora": UUID(refusing)}
    gate.set()
    for user, job in (("ada", refusing), ("dora", same["dora"])):
        assert ended(kitchen, user, job)["error_code"] == "NOT_A_RECIPE"
    for user, job in (("bob", allowing), ("cleo", same["cleo"]), ("ada", second)):
        assert ended(kitchen, user, job)["result"]["used_llm"], user
    assert (kitchen.site.asked["/tale/2"], model.asked) == (2, 1)


def test_a_canceled_request_leaves_its_work_to_one_of_the_same_mind(model: Model, kitchen: Kitchen) -> None:
    gate = kitchen.site.gate("/tale/3", TALE)
    url = kitchen.site.url("/tale/3")
    first, refusing = ask(kitchen, "ada", url, allows=True), ask(kitchen, "bob", url, allows=False)
    heir = ask(kitchen, "cleo", url, allows=True)
    assert kitchen.served.client("ada").post(f"/recipes/parse-url/jobs/{first}/cancel").status_code == 200
    gate.set()
    assert ended(kitchen, "cleo", heir)["result"]["used_llm"]
    assert ended(kitchen, "bob", refusing)["error_code"] == "NOT_A_RECIPE"


def test_an_answer_that_needed_no_model_is_for_everybody(model: Model, kitchen: Kitchen) -> None:
    for path, first in (("/plain/allowed", True), ("/plain/refused", False)):
        url = kitchen.site.page(path, PAGES["plain"])
        for user, allows in (("ada", first), ("bob", not first)):
            assert outcome(kitchen, user, url, allows=allows) == ("COMPLETE", "schema_org_json_ld")
        assert guest(kitchen, url).status_code == 200
        assert (kitchen.site.asked[path], model.asked) == (1, 0)


def test_half_a_recipe_is_no_answer_for_who_allows_a_model(model: Model, kitchen: Kitchen) -> None:
    url = kitchen.site.page("/soup/5", WITHOUT_STEPS)
    assert outcome(kitchen, "ada", url, allows=False) == ("COMPLETE", "schema_org_json_ld")
    assert guest(kitchen, url).status_code == 202
    assert outcome(kitchen, "bob", url, allows=True) == ("COMPLETE", "llm")
    assert (kitchen.site.asked["/soup/5"], model.asked) == (2, 1)
    assert outcome(kitchen, "cleo", url, allows=False) == ("COMPLETE", "schema_org_json_ld")
    assert outcome(kitchen, "dora", url, allows=True) == ("COMPLETE", "llm")
    assert (kitchen.site.asked["/soup/5"], model.asked) == (2, 1), "both are known by now"


def test_half_a_recipe_is_for_everybody_once_the_model_found_no_more(model: Model, kitchen: Kitchen) -> None:
    model.says({"name": None})
    url = kitchen.site.page("/soup/6", WITHOUT_STEPS)
    for user, allows in (("ada", True), ("bob", False), ("cleo", True)):
        assert outcome(kitchen, user, url, allows=allows) == ("COMPLETE", "schema_org_json_ld")
    assert (kitchen.site.asked["/soup/6"], model.asked) == (1, 1)


def test_half_a_recipe_is_kept_when_the_model_is_down(model: Model, kitchen: Kitchen) -> None:
    url = kitchen.site.page("/soup/8", WITHOUT_STEPS)
    model.says(SOUP, status=500)
    shown = ended(kitchen, "ada", ask(kitchen, "ada", url, allows=True))
    assert (shown["status"], shown["result"]["used_llm"]) == ("COMPLETE", False)
    assert shown["result"]["warnings"] == ["No steps were found.", NOT_ASKED]
    newest = kitchen.served.client("ada").get("/recipes/parse-url/jobs").json()["jobs"][0]
    assert newest["warnings"][-1] == NOT_ASKED
    model.says(SOUP)
    assert outcome(kitchen, "bob", url, allows=True) == ("COMPLETE", "llm"), "who asks later gets the whole"
    assert kitchen.site.asked["/soup/8"] == 2


def test_a_model_that_refuses_is_asked_once(model: Model, kitchen: Kitchen) -> None:
    model.says(SOUP, status=401)
    shown = ended(kitchen, "ada", ask(kitchen, "ada", kitchen.site.page("/tale/9", TALE), allows=True))
    assert (shown["status"], shown["error_code"]) == ("ERROR", "LLM_REFUSED")
    assert shown["error_message"] == "the language model refuses to be asked: it answers 401"
    assert model.asked == 1


def test_a_key_stands_for_one_of_both(kitchen: Kitchen) -> None:
    ada, url = kitchen.served.client(), kitchen.site.page("/soup/10", PAGES["plain"])
    key = {"Idempotency-Key": "k"}
    answers = [
        ada.post("/recipes/parse-url/async", json={"url": url, "use_llm_fallback": allows}, headers=key)
        for allows in (True, True, False)
    ]
    assert [answer.status_code for answer in answers] == [202, 202, 422]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert answers[2].json()["code"] == "IDEMPOTENCY_KEY_REUSED"


def test_a_result_that_was_pruned_is_replaced_by_one_the_request_allows(model: Model, kitchen: Kitchen) -> None:
    url = kitchen.site.page("/soup/11", WITHOUT_STEPS)
    requests = {allows: ask(kitchen, "ada", url, allows=allows) for allows in (True, False)}
    shown = {allows: ended(kitchen, "ada", job)["result"] for allows, job in requests.items()}
    kitchen.app.in_transaction(forget_results)
    ada = kitchen.served.client()
    for allows, job in requests.items():
        polled = ada.get(f"/parse-requests/{job}").json()["recipe"]
        assert polled["parsedAt"] == shown[allows]["parsed_at"].replace("+00:00", "Z"), allows


def forget_results(connection: Any) -> None:
    """As the sweep does with abandoned jobs where the setting says so."""
    from penstock.store.tables import jobs

    connection.execute(jobs.update().where(jobs.c.kind == RECIPE).values(result=None))


# What is kept of a page -----------------------------------------------------------------------------------------------


def result_of(title: str, *, used_llm: bool = False, days_ago: float = 0.0) -> RecipeResult:
    result = recipe_of(script(soup(name=title)), ADDRESS).as_json(ADDRESS)
    result["used_llm"] = used_llm
    result["parsed_at"] = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat()
    return result


@pytest.mark.parametrize(
    ("rows", "allowing", "refusing"),
    [
        ([("page", {}, False)], "page", "page"),
        ([("model", {"used_llm": True}, False)], "model", None),
        ([("half", {}, True)], None, "half"),
        ([("half", {}, True), ("model", {"used_llm": True, "days_ago": 1}, False)], "model", "half"),
        ([("page", {}, False), ("model", {"used_llm": True, "days_ago": 1}, False)], "page", "page"),
        ([("page", {"days_ago": 40}, False), ("model", {"used_llm": True}, False)], "model", None),
        ([("page", {"days_ago": 40}, False)], None, None),
    ],
)  # fmt: skip
def test_the_newest_answer_that_one_may_have(
    kitchen: Kitchen, rows: list[tuple[str, dict[str, Any], bool]], allowing: str | None, refusing: str | None
) -> None:
    repository, url_hash = kitchen.recipes.repository, key_of(repr(rows))

    def keep(connection: Any) -> None:
        for title, changes, llm_may_help in rows:
            repository.keep(connection, url_hash, result_of(title, **changes), llm_may_help=llm_may_help)

    kitchen.app.in_transaction(keep)
    for llm_allowed, expected in ((True, allowing), (False, refusing)):
        known = repository.fresh(url_hash, 30, llm_allowed=llm_allowed)
        assert (None if known is None else known.title) == expected
        if expected is not None:
            result = repository.result(url_hash, llm_allowed=llm_allowed)
            assert result is not None
            assert result["recipe"]["title"] == expected, "what a plan has found is what its finalizer gets"


def test_the_work_of_both_has_two_names() -> None:
    assert work_key("a", use_llm_fallback=True) == "a"
    assert work_key("a", use_llm_fallback=False) != "a"
