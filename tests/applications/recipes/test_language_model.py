"""The last resort: a language model, asked when nothing else helps, and not believed blindly."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from penstock import Permanent, Retryable
from penstock.errors import ConfigurationError
from penstock.settings import read_settings
from penstock_apps.recipes.parsing.language_model import LanguageModel
from penstock_apps.recipes.settings import RecipeSettings
from tests.applications.recipes.pages import ADDRESS, PAGES, SOUP, WITHOUT_STEPS
from tests.applications.recipes.readers import recipe_of
from tests.applications.recipes.site import Site, open_site

TALE = "<html><script>ignore()</script><body><p>Take two tablespoons of oil.</p><p>Warm them.</p></body></html>"


@pytest.fixture
def models() -> Iterator[Site]:
    with open_site() as one:
        yield one


def model(site: Site, answer: Any, *, status: int = 200, **headers: str) -> LanguageModel:
    """A model that says this."""
    said = answer if isinstance(answer, str) else json.dumps(answer)
    text = json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]})
    site.page("/v1/chat/completions", text, status=status, Content_Type="application/json", **headers)
    return LanguageModel(site.url("/v1/"), "a-model", "a-key", seconds=5.0)


def test_what_a_model_says_is_a_recipe_with_a_warning(models: Site) -> None:
    found = recipe_of(TALE, ADDRESS, model(models, SOUP))
    assert (found.strategy, found.used_llm) == ("llm", True)
    assert found.warnings == ("LLM fallback used; please verify ingredients.",)
    assert found.recipe.title == "Tomato soup"
    assert models.headers[0]["Authorization"] == "Bearer a-key"
    question = json.loads(models.bodies[0])
    assert question["model"] == "a-model"
    assert question["messages"][1]["content"] == "Take two tablespoons of oil.\nWarm them."


def test_a_model_is_not_asked_where_the_page_says_it_itself(models: Site) -> None:
    assert not recipe_of(PAGES["plain"], ADDRESS, model(models, SOUP)).used_llm
    assert not models.asked


@pytest.mark.parametrize(
    "said",
    [{"name": None}, "I see no recipe.", "", "{broken", [1, 2], {"name": "Soup"}, "```json\n[]\n```"],
    ids=["null", "words", "nothing", "broken", "list", "no steps", "fenced list"],
)
def test_a_model_that_finds_nothing_leaves_nothing(models: Site, said: Any) -> None:
    with pytest.raises(Permanent) as refused:
        recipe_of(TALE, ADDRESS, model(models, said))
    assert refused.value.code == "NOT_A_RECIPE"


def test_an_answer_in_a_fence_is_read(models: Site) -> None:
    assert recipe_of(TALE, ADDRESS, model(models, f"Here it is:\n```json\n{json.dumps(SOUP)}\n```")).used_llm


def test_a_model_that_cannot_be_asked_is_asked_again_later(models: Site) -> None:
    down = LanguageModel("http://127.0.0.1:1/v1", "m", seconds=5.0)
    for one in (model(models, SOUP, status=500), model(models, SOUP, status=429), down):
        with pytest.raises(Retryable) as refused:
            recipe_of(TALE, ADDRESS, one)
        assert refused.value.code == "LLM_FAILED"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 301])
def test_a_model_that_refuses_is_not_asked_again(models: Site, status: int) -> None:
    with pytest.raises(Permanent) as refused:
        recipe_of(TALE, ADDRESS, model(models, SOUP, status=status))
    assert refused.value.code == "LLM_REFUSED"
    assert str(status) in refused.value.message


@pytest.mark.parametrize("status", [401, 429, 500])
def test_what_a_page_says_itself_is_kept_where_a_model_is_of_no_help(models: Site, status: int) -> None:
    found = recipe_of(WITHOUT_STEPS, ADDRESS, model(models, SOUP, status=status))
    assert (found.strategy, found.used_llm, found.llm_may_help) == ("schema_org_json_ld", False, True)
    assert found.warnings == (
        "No steps were found.", "The language model could not be asked; this is what the page says itself.",
    )  # fmt: skip


def test_a_model_may_help_only_where_there_is_one_that_has_not_answered(models: Site) -> None:
    silent = model(models, {"name": None})
    assert recipe_of(WITHOUT_STEPS, ADDRESS, silent, llm_allowed=False).llm_may_help
    assert not models.asked, "who refuses a model is taken at their word"
    assert not recipe_of(WITHOUT_STEPS, ADDRESS, silent).llm_may_help
    assert not recipe_of(WITHOUT_STEPS, ADDRESS).llm_may_help
    assert not recipe_of(PAGES["plain"], ADDRESS, silent, llm_allowed=False).llm_may_help


def test_an_answer_that_is_no_answer_is_nothing(models: Site) -> None:
    asked = model(models, SOUP)

    def odd(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b'{"choices": []}')

    models.pages["/v1/chat/completions"] = odd
    with pytest.raises(Permanent):
        recipe_of(TALE, ADDRESS, asked)


def test_an_answer_has_bounds_of_size(models: Site) -> None:
    asked = model(models, SOUP)
    sent: list[int] = []

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        with suppress(ConnectionError):
            while sum(sent) < 50_000_000:
                sent.append(handler.wfile.write(b" " * 100_000))

    models.pages["/v1/chat/completions"] = endless
    with pytest.raises(Permanent) as refused:
        recipe_of(TALE, ADDRESS, asked)
    assert refused.value.code == "NOT_A_RECIPE"
    assert sum(sent) < 50_000_000, "nobody reads the rest"


def test_a_model_that_drips_is_not_waited_for(models: Site) -> None:
    over = threading.Event()

    def dripping(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        with suppress(ConnectionError):
            while not over.wait(0.02):
                handler.wfile.write(b"X-Drip: 1\r\n")

    models.pages["/v1/chat/completions"] = dripping
    try:
        with pytest.raises(Retryable, match="it took too long"):
            recipe_of(TALE, ADDRESS, LanguageModel(models.url("/v1"), "m", seconds=0.3))
    finally:
        over.set()


def test_a_model_that_wants_to_be_left_alone_is(models: Site) -> None:
    """It is not asked for other pages either, and for no longer than people wait."""
    asked = model(models, SOUP, status=429, Retry_After="120")
    with pytest.raises(Retryable) as refused:
        recipe_of(TALE, ADDRESS, asked)
    assert (refused.value.code, refused.value.retry_after) == ("LLM_FAILED", 120.0)
    with pytest.raises(Retryable, match="left alone") as refused:
        recipe_of(TALE.replace("two", "three"), ADDRESS, asked)
    assert models.asked["/v1/chat/completions"] == 1
    assert refused.value.retry_after is not None
    assert 60.0 < refused.value.retry_after <= 120.0
    assert recipe_of(WITHOUT_STEPS, ADDRESS, asked).llm_may_help, "what a page says itself is not waited with"
    patient = model(models, SOUP, status=503, Retry_After="86400")
    with pytest.raises(Retryable) as refused:
        recipe_of(TALE, ADDRESS, patient)
    assert refused.value.retry_after == 300.0


def test_a_model_leads_to_no_other_host_and_through_no_proxy(models: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_site() as elsewhere:
        asked = model(models, "", status=302, Location=elsewhere.url("/v1/chat/completions"))
        monkeypatch.setenv("HTTP_PROXY", elsewhere.url(""))
        monkeypatch.setenv("ALL_PROXY", elsewhere.url(""))
        with pytest.raises(Permanent) as refused:
            recipe_of(TALE, ADDRESS, asked)
        assert (refused.value.code, models.asked["/v1/chat/completions"]) == ("LLM_REFUSED", 1)
        assert not elsewhere.asked


def test_settings_are_read_from_the_environment_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert RecipeSettings().language_model is None
    given = {"PENSTOCK_LLM_URL": "https://models.example/v1", "PENSTOCK_LLM_MODEL": "m"}
    assert read_settings(RecipeSettings, **given).language_model == LanguageModel("https://models.example/v1", "m")
    for wrong in ({"PENSTOCK_LLM_URL": "models.example"}, {"PENSTOCK_LLM_URL": "https://models.example"}):
        with pytest.raises(ConfigurationError, match="PENSTOCK_LLM"):
            read_settings(RecipeSettings, **wrong)
    fetching = {"PENSTOCK_FETCH_ALLOW_HOSTS": " a.example, b.example:8080,", "PENSTOCK_FETCH_MAX_BYTES": "1MB"}
    for name, value in fetching.items():
        monkeypatch.setenv(name, value)
    limits = read_settings(RecipeSettings).fetch_limits
    assert (limits.allowed_hosts, limits.bytes) == (("a.example", "b.example:8080"), 1_000_000)
