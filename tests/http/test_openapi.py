"""The OpenAPI document is true: Schemathesis asks what it allows and what it forbids, and no answer surprises.

Every request goes to a real server with all applications, where jobs in several states wait to be found.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
import schemathesis
from fastapi import FastAPI
from hypothesis import settings as hypothesis_settings
from schemathesis.checks import CheckFunction
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Ok
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    unsupported_method,
)

from penstock import ItemContext, Penstock, Permanent, load_settings
from penstock.server import create_app
from penstock_apps.catalogs.application import catalogs as catalogs_application
from penstock_apps.catalogs.settings import CatalogSettings
from penstock_apps.documents.application import documents as documents_application
from penstock_apps.documents.settings import DocumentSettings
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.settings import RecipeSettings
from tests.http.conftest import SECRET, Served, served_site, serving
from tests.http.test_live import events
from tests.sizes import size

# The server's threads draw random numbers while Hypothesis makes up a request, which it takes for a strategy's doing.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
PATIENCE = 30.0
LARGEST_JSON = 1024 * 1024
LONGEST_ANSWER = 10.0
EXAMPLES = size(6, 25)
EVENTS = "GET /api/jobs/{job_id}/events"
LISTS = {"GET /api/jobs", "GET /api/jobs/{job_id}/items", "GET /api/pending"}
KICKOFF = "POST /api/jobs/{job_id}/kickoff"
STOP = "DELETE /api/jobs/{job_id}"
UNSAYABLE = {
    "GET /api/jobs", "GET /parse-requests", "GET /recipes", "POST /api/jobs",
    "POST /api/catalogs", "PATCH /api/catalogs/{catalog_id}", "POST /recipes/parse-url/async",
    "POST /recipes/parse-payload/async", "POST /parse-requests", "POST /api/v1/recipes/parse",
    "PATCH /recipes/{recipe_id}", "GET /api/jobs/{job_id}/items", "GET /api/pending",
    "POST /recipes", "GET /recipes/parse-url/jobs", "POST /api/jobs/{job_id}/reprocess",
    "POST /api/sessions/end",
}  # fmt: skip
"""Operations that may refuse what their schema allows: cursors, folders, addresses, files are more than their type, and
a text may have what no database keeps.
"""


@dataclass(frozen=True, slots=True)
class World:
    """A server with all applications, and ids that lead somewhere."""

    served: Served
    folder: Path
    jobs: dict[str, str]
    documents: list[str]
    catalog: str
    spare_catalog: str
    """One that may be deleted."""
    recipes: list[str]
    asked: Counter[Any] = field(default_factory=Counter)

    def next_id(self, operation: str, made_up: str) -> str:
        """The ids worth asking ``operation`` for, in turn, and then one that leads nowhere."""
        ids = [*self.ids(operation), made_up]
        self.asked[operation] += 1
        return ids[(self.asked[operation] - 1) % len(ids)]

    def ids(self, operation: str) -> list[str]:
        """The ids worth asking ``operation`` for."""
        if operation == "DELETE /api/catalogs/{catalog_id}":
            return [self.spare_catalog]
        if "/api/catalogs/" in operation:
            return [self.catalog]
        if "/recipes/{recipe_id}" in operation:
            return self.recipes
        if "/api/documents/" in operation:
            return [*self.documents, self.jobs["finished"]]
        if operation == STOP:
            return [self.jobs[name] for name in ("to be stopped", "finished", "failed", "canceled")]
        if operation in (EVENTS, KICKOFF):
            # A stream ends with its job, and a kickoff at the latest; a job that runs is met in tests of their own.
            return [self.jobs[name] for name in ("finished", "failed", "canceled")]
        return list(self.jobs.values())


def install_all(app: Penstock, root: Path) -> None:
    """Documents, catalogs and recipes."""
    catalogs = CatalogSettings(roots=(root.resolve(),), thumbnails_directory=root / "thumbnails")
    app.install(documents_application, DocumentSettings())
    app.install(catalogs_application, catalogs)
    app.install(recipes_application, RecipeSettings())


def described() -> dict[str, Any]:
    """The OpenAPI document; a database is not touched for it."""
    app = Penstock(settings=load_settings(database_url="sqlite://", jwt_secret=SECRET))
    install_all(app, Path.cwd())
    return create_app(app).openapi()


DOCUMENT = described()


@contextmanager
def world(tmp_path: Path) -> Iterator[World]:
    """A server whose jobs are finished, failed, canceled and running; nothing else is worked on."""
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db",
        files_directory=tmp_path / "files",
        heartbeat_seconds=0.05,
        jwt_secret=SECRET,
        submissions_per_minute=1_000_000,
        metrics_networks=(),
    )
    folder = tmp_path / "photos"
    folder.mkdir()
    app = Penstock(settings=settings)
    install_all(app, tmp_path)
    app.system.migrate()
    with jobs_of(app) as jobs, serving(app, worker=False) as served:
        ada = served.client()
        upload = {"file": ("log.txt", b"five words are in here")}
        uploaded = [ada.post("/api/documents/jobs", files=upload).json()["jobId"] for _ in range(4)]
        ada.post(f"/api/documents/jobs/{uploaded[0]}/submit")
        holidays = {"name": "Holidays", "source_directories": [str(folder)]}
        catalog, spare = (ada.post("/api/catalogs", json=holidays).json()["id"] for _ in range(2))
        soups = [ada.post("/recipes", json={"title": "Soup"}).json() for _ in range(4)]
        saved = [str(soup["id" if number % 2 else "uuid"]) for number, soup in enumerate(soups)]
        yield World(served, folder, jobs, uploaded, catalog, spare, saved)
    app.close()


@contextmanager
def jobs_of(app: Penstock) -> Iterator[dict[str, str]]:
    """Ada's jobs by what became of them; those that run do so until the end."""
    gate, running = threading.Event(), threading.Semaphore(0)

    @app.kind("gated")
    def gated(item: ItemContext) -> None:
        running.release()
        gate.wait()

    @app.kind("broken")
    def broken(item: ItemContext) -> None:
        raise Permanent("the handler says no")

    app.kind("quick")(lambda item: {"answer": 42})
    finished = app.submit("quick", items=[1, 2, 3], owner="ada").job
    failed = app.submit("broken", {}, owner="ada").job
    canceled = app.submit("gated", {}, owner="ada", hold=True).job
    app.jobs.cancel(canceled.id, reason="nobody needs it")
    assert app.drain(kinds=["quick", "broken"], timeout=PATIENCE)
    with app.working(kinds=["gated"]):
        runs, stopped = (app.submit("gated", {}, owner="ada").job for _ in range(2))
        assert all(running.acquire(timeout=PATIENCE) for _ in range(2))
        named = {"finished": finished, "failed": failed, "canceled": canceled, "running": runs}
        try:
            yield {name: str(job.id) for name, job in {**named, "to be stopped": stopped}.items()}
        finally:
            gate.set()


@pytest.fixture(scope="module")
def one_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("openapi")) as one:
        yield one


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Connections that are used again."""
    with requests.Session() as one:
        yield one


@pytest.fixture(scope="module")
def tokens(one_world: World) -> Callable[[str], str]:
    """A new token of a user or an admin: those from before may have been ended."""
    issue = one_world.served.server.config.app.state.penstock.tokens.issue  # type: ignore[union-attr]
    return lambda role: str(issue("ada") if role == "user" else issue("root", is_admin=True))


# What the document says of each operation.
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
WHOLE = schemathesis.openapi.from_dict(DOCUMENT)


# A list that is followed has no end; test_live_list.py follows some.
@pytest.mark.parametrize("label", [label for label in OPERATIONS if label != "GET /api/jobs/live"])
def test_neither_a_user_nor_an_admin_gets_an_answer_that_is_not_documented(
    label: str, one_world: World, session: requests.Session, tokens: Callable[[str], str]
) -> None:
    """They ask in turn. Requests are made up here, and not while tests are collected: each process would make all."""

    @hypothesis_settings(max_examples=EXAMPLES)
    def in_turn(case: schemathesis.Case) -> None:
        one_world.asked[label, "token"] += 1
        ask(case, one_world, session, tokens("user" if one_world.asked[label, "token"] % 2 else "admin"))

    method, path = label.split(" ")
    [made] = get_all_tests(
        schema=WHOLE.include(path=path, method=method), test_func=in_turn, settings=None, given_kwargs=None
    )
    assert isinstance(made, Ok), made
    operation, test = made.ok()
    assert operation.label == label
    test()


def ask(case: schemathesis.Case, world: World, session: requests.Session, token: str) -> None:
    """Send what Schemathesis made up, often with an id that is there, and hold the answer to the document."""
    lead_somewhere(case, world)
    case.call_and_validate(
        world.served.url,
        session,
        headers={} if takes_the_token_away(case) else {"Authorization": f"Bearer {token}"},
        excluded_checks=list(excluded(case)),
        timeout=LONGEST_ANSWER,
    )


def excluded(case: schemathesis.Case) -> Iterator[CheckFunction]:
    """The checks that would call a right answer wrong."""
    # What is a cursor of ours, which folders there are, which keys were used before and what a thing is now, a schema
    # cannot say.
    if case.operation.label in UNSAYABLE or {"idempotency-key", "if-match"} & {name.lower() for name in case.headers}:
        yield positive_data_acceptance
    # A number in place of a file is sent as its digits, and those are a good file. test_documents.py has the bad ones.
    if case.operation.label == "POST /api/documents/jobs" and not is_good(case, ParameterLocation.BODY):
        yield negative_data_rejection
    # By its form the address is that of a job too, which could be stopped, were one called so.
    if case.operation.label == "GET /api/jobs/health":
        yield allow_header_conformance
        yield unsupported_method
    # A filter without a value was not set: lists take it so, whatever the type of the filter is.
    if case.operation.label in LISTS and any(value in ("", None) for value in case.query.values()):
        yield negative_data_rejection
    # It is refused for its size before anybody looks what is in it.
    if len(json.dumps(case.body, default=str)) > LARGEST_JSON:
        yield negative_data_rejection
        yield positive_data_acceptance


def takes_the_token_away(case: schemathesis.Case) -> bool:
    """Is it the token that Schemathesis left out or spoiled?"""
    data: Any = case.meta.phase.data if case.meta is not None else None
    changed = [getattr(data, "parameter", None)]
    changed += [part for one in getattr(data, "mutations", ()) for part in (one.parameter, one.original_value)]
    return "Authorization" in changed


def lead_somewhere(case: schemathesis.Case, world: World) -> None:
    """Put real ids and a real folder into good requests."""
    if is_good(case, ParameterLocation.PATH):
        for name, made_up in case.path_parameters.items():
            if name.endswith("_id"):
                case.path_parameters[name] = world.next_id(case.operation.label, made_up)
    if case.operation.label == "POST /api/catalogs" and is_good(case, ParameterLocation.BODY):
        body: Any = case.body
        body["source_directories"] = [str(world.folder)] if len(body["name"]) % 2 == 0 else body["source_directories"]


def is_good(case: schemathesis.Case, place: ParameterLocation) -> bool:
    """Did Schemathesis mean this part of the request to be right?"""
    part = case.meta.components.get(place) if case.meta is not None else None
    return part is not None and part.mode.is_positive


# What the document says of each operation -------------------------------------------------------------------------

PROBLEMS = [
    {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    for name in ("Problem", "RequestNotFound")
]


@pytest.mark.parametrize("label", OPERATIONS)
def test_an_operation_says_what_it_is_for_and_how_it_fails(label: str) -> None:
    operation = OPERATIONS[label]
    assert operation["summary"]
    problems = {status: one for status, one in operation["responses"].items() if int(status) >= 400}
    assert all(one["content"] in PROBLEMS and one["description"] for one in problems.values())
    assert expected_problems(label) <= problems.keys()


def expected_problems(label: str) -> set[str]:
    """The problems that follow from what an operation takes."""
    operation = OPERATIONS[label]
    return {
        *(["401", "503"] if "security" in operation else []),
        *(["404"] if "{" in label else []),
        *(["422"] if "parameters" in operation else []),
        *(["400", "413", "422"] if "requestBody" in operation else []),
    }


@pytest.mark.parametrize("label", [label for label, one in OPERATIONS.items() if "requestBody" in one])
def test_a_body_has_an_example(label: str) -> None:
    for described in OPERATIONS[label]["requestBody"]["content"].values():
        assert "example" in described or any(one.get("examples") for one in alternatives(described["schema"]))


def alternatives(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema, or those it leads to."""
    if "$ref" in schema:
        yield DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from alternatives(one)
    else:
        yield schema


# The limit on bodies ----------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Served]:
    """A server that takes a kilobyte."""
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db",
        files_directory=tmp_path / "files",
        jwt_secret=SECRET,
        max_body_bytes=1024,
        max_json_bytes=1024,
    )
    app = Penstock(settings=settings)
    install_all(app, tmp_path)
    app.system.migrate()
    with serving(app, worker=False) as served:
        yield served
    app.close()


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api/catalogs", "application/json"), ("/api/documents/jobs", "multipart/form-data; boundary=x")],
)
def test_a_body_over_the_limit_is_refused(small: Served, path: str, kind: str, chunked: bool) -> None:
    ada = small.client()
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' if "x" in kind[-1] else b'"'
    body = head + b"a" * 1024
    answer = ada.post(path, content=iter([body]) if chunked else body, headers={"Content-Type": kind})
    assert ("transfer-encoding" in answer.request.headers) is chunked
    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")
    assert sorted(answer.json()) == ["code", "detail", "field", "message", "request_id"]
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert ada.get("/api/jobs").status_code == 200


def test_a_body_of_just_the_limit_is_read(small: Served) -> None:
    answer = small.client().post("/api/catalogs", content=b" " * 1024, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_INPUT")


# In an application of one's own -----------------------------------------------------------------------------------


def test_mounted_under_a_prefix_routes_events_and_worker_work(tmp_path: Path) -> None:
    app = Penstock(settings=load_settings(database_url=f"sqlite:///{tmp_path}/penstock.db", jwt_secret=SECRET))
    app.kind("quick")(lambda item: {"answer": 42})
    app.system.migrate()
    jobs = create_app(app, worker=True)
    site = FastAPI(lifespan=jobs.router.lifespan_context)
    site.get("/hello")(lambda: {"hello": "world"})
    site.mount("/tasks", jobs)
    headers = {"Authorization": f"Bearer {jobs.state.penstock.tokens.issue('ada')}"}
    with served_site(site) as url, httpx2.Client(base_url=url, headers=headers, timeout=PATIENCE) as ada:
        assert ada.get("/hello").json() == {"hello": "world"}
        assert ada.get("/tasks/healthz").json() == {"status": "ok"}
        assert ada.get("/tasks/hello").json()["code"] == "NO_SUCH_ADDRESS"
        first, second = (app.submit("quick", {}, owner="ada").job for _ in range(2))
        for job in (first, second):
            with ada.stream("GET", f"/tasks/api/jobs/{job.id}/events") as answer:
                seen = [name for name, _, _ in events(answer)]
            assert (seen[0], seen[-1]) == ("history", "end")
            assert ada.get(f"/tasks/api/jobs/{job.id}").json()["result"] == {"answer": 42}
        page = ada.get("/tasks/api/jobs", params={"limit": 1})
        assert page.json()[0]["job_id"] == str(second.id)
        assert ada.get(page.links["next"]["url"]).json()[0]["job_id"] == str(first.id)
        refused = ada.put(f"/tasks/api/jobs/{first.id}")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, DELETE")
        assert ada.get("/tasks/openapi.json").json()["servers"] == [{"url": "/tasks"}]
    app.close()


def test_operations_are_called_what_a_client_would_call_them() -> None:
    names = {
        f"{method.upper()} {path}": operation["operationId"]
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }
    twice = [name for name, count in Counter(names.values()).items() if count > 1]
    assert not twice
    # A verb and its object, in the spelling of most languages.
    assert [name for name in names.values() if not re.fullmatch("[a-z]+([A-Z][a-z0-9]*)+", name)] == []
    assert (
        names.items()
        >= {
            "GET /api/jobs": "listJobs",
            "GET /api/jobs/{job_id}": "getJob",
            "DELETE /api/jobs/{job_id}": "cancelJob",
            "GET /api/jobs/{job_id}/items": "listItems",
            "POST /api/jobs/{job_id}/export": "exportItems",
            "GET /api/pending": "listPending",
            "GET /api/system": "getSystem",
        }.items()
    )
