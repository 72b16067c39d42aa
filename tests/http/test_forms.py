"""Forms that start jobs: routes tell of them in the OpenAPI document, and what they tell is true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from starlette.testclient import TestClient

from penstock import Penstock, load_settings
from penstock.applications import install_applications
from penstock.http import FormField, Json, StartForm, Submitting
from penstock.http.forms import start_forms
from penstock.server import create_app
from tests.http.conftest import SECRET

PLACE = re.compile(r"\{(\w+)\}")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The description of a server with every application."""
    directory = tmp_path_factory.mktemp("starting")
    settings = load_settings(
        database_url=f"sqlite:///{directory}/penstock.db", files_directory=directory / "files", jwt_secret=SECRET
    )
    app = install_applications(Penstock(settings=settings))
    try:
        yield create_app(app, worker=False).openapi()
    finally:
        app.close()


def route(document: dict[str, Any], address: str) -> dict[str, Any]:
    """The POST route that an address leads to, whatever its places are called."""
    for path, methods in document["paths"].items():
        if "post" in methods and re.fullmatch(PLACE.sub("[^/]+", path), address):
            return dict(methods["post"])
    raise AssertionError(f"nothing is posted to {address}")


def followed(document: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """A schema, or the one it refers to."""
    while "$ref" in shape:
        shape = document["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    return shape


def answer_of(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    """What a route answers when all is well."""
    good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    found: dict[str, Any] = followed(document, good["content"]["application/json"]["schema"])["properties"]
    return found


def body_of(document: dict[str, Any], operation: dict[str, Any], media_type: str) -> dict[str, Any]:
    """What may be sent to a route."""
    return followed(document, operation["requestBody"]["content"][media_type]["schema"])


def addresses(form: StartForm) -> list[str]:
    """Every address a form may be sent to: one for each choice that is part of it."""
    found = [form.address]
    for field in form.fields:
        values = [value for value, _ in field.choices] or ["3"]
        found = [one.replace(f"{{{field.name}}}", value) for one in found for value in values]
    return list(dict.fromkeys(found))


def test_every_application_has_its_forms(document: dict[str, Any]) -> None:
    assert {form.title for form in start_forms(document)} == {
        "Look products up", "Read a recipe", "Read photos of a recipe", "Hand in a document", "New photo catalog",
        "Work on a catalog",
    }  # fmt: skip


def test_forms_are_sent_to_routes_that_take_their_fields(document: dict[str, Any]) -> None:
    for form in start_forms(document):
        named = set(PLACE.findall(form.address))
        assert named <= {field.name for field in form.fields}, form.title
        sent = {field.name for field in form.fields} - named
        asked = {field.name for field in form.fields if field.required} - named
        for address in addresses(form):
            operation = route(document, address)
            if not sent:
                assert not operation.get("requestBody", {}).get("required"), f"{address} wants a body"
                continue
            body = body_of(document, operation, "multipart/form-data" if form.as_files else "application/json")
            assert sent <= set(body["properties"]), f"{address} does not know all of {sent}"
            assert set(body.get("required", ())) <= asked, f"{form.title} does not ask for all that {address} needs"


def test_the_answers_have_what_leads_to_the_job(document: dict[str, Any]) -> None:
    for form in start_forms(document):
        for address in addresses(form):
            answer = answer_of(document, route(document, address))
            if form.then:
                assert set(PLACE.findall(form.then)) <= set(answer), f"{address} does not answer what {form.then} needs"
                then = route(document, PLACE.sub("3", form.then))
                assert not then.get("requestBody", {}).get("required"), f"{form.then} wants a body"
                answer = answer_of(document, then)
            assert form.answer in answer, f"{form.title}: no {form.answer} in what is answered"


def test_choices_come_from_a_list_with_names(document: dict[str, Any]) -> None:
    forms = start_forms(document)
    fields = [field for form in forms for field in form.fields if field.choices_from and field.type == "choice"]
    assert fields, "a form has choices from an address"
    for field in fields:
        operation = document["paths"][field.choices_from.partition("?")[0]]["get"]
        listed = followed(document, operation["responses"]["200"]["content"]["application/json"]["schema"])
        assert {"id", "name"} <= set(followed(document, listed["items"])["properties"])


def test_fields_are_of_use(document: dict[str, Any]) -> None:
    for form in start_forms(document):
        assert form.fields, form.title
        for field in form.fields:
            assert field.label, field
            # What the columns of a table are taken for is asked for with the table itself.
            assert (field.type in ("choice", "columns")) == bool(field.choices or field.choices_from), field


def test_a_form_of_ones_own_is_shown_on_the_page_of_jobs(tmp_path: Path) -> None:
    routes = APIRouter()
    fields = (
        FormField("text", "A text", hint="Of <any> length."),
        FormField("pages", "Pages", "lines", required=False),
        FormField("language", "Language", "choice", choices=(("en", "English"), ("de", "German"))),
    )
    form = StartForm('Count "words"', fields=fields, button="Count")

    @routes.post("/api/texts", openapi_extra=form.extra())
    def count(who: Submitting) -> Json:
        return Json({"job_id": who.user})

    app = Penstock(f"sqlite:///{tmp_path}/penstock.db", settings=load_settings(jwt_secret=SECRET))
    app.system.migrate()
    api = create_app(app, worker=False, more=[routes])
    token = api.state.penstock.tokens.issue("ada")
    with TestClient(api, headers={"Authorization": f"Bearer {token}"}) as client:
        page = client.get("/ui/jobs").text
    app.close()
    (told,) = start_forms(api.openapi())
    assert (told.title, told.address, told.button) == (form.title, "/api/texts", "Count")
    assert [field.name for field in told.fields] == ["text", "pages", "language"]
    assert 'data-address="/api/texts"' in page
    assert 'aria-label="Count &#34;words&#34;"' in page
    assert "Of &lt;any&gt; length." in page
    assert '<textarea id="start-1-pages" name="pages" rows="3" data-lines="true"' in page
    assert '<option value="de">German</option>' in page
    assert page.count(" required>") == 2
