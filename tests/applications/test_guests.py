"""Applications are guests: found, chosen, left out with a reason, and loaded no further than they are needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI

from penstock import Penstock, load_settings
from penstock.application import resolve
from penstock.applications import choose_applications, find_applications, install_applications, leave_out
from penstock.errors import ConfigurationError, KindUnknown, LibraryMissing
from tests.http.conftest import SECRET, Served, serving

OURS = ["catalogs", "documents", "products", "recipes"]


def run(program: str, tmp_path: Path) -> str:
    """What a program prints in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_they_are_found_and_chosen_by_name() -> None:
    assert list(find_applications()) == OURS
    assert [one.name for one in choose_applications("recipes, documents")] == ["recipes", "documents"]
    assert choose_applications("none") == []
    with pytest.raises(ConfigurationError, match="'letters'") as refused:
        choose_applications("letters")
    assert refused.value.code == "APPLICATION_UNKNOWN"


def test_each_brings_the_kinds_it_names() -> None:
    for name, application in find_applications().items():
        app = Penstock(settings=load_settings(database_url="sqlite://"))
        app.install(application)
        assert {kind.name for kind in app.kinds} == set(application.kinds), name
        assert [guest.application.name for guest in app.applications] == [name]
        for part in (application.settings, application.routes, application.pages, application.samples):
            assert part is None or resolve(part) is not None
        assert all(callable(command) for command in resolve(application.commands))


def test_none_is_a_penstock_without_kinds_and_with_pages(tmp_path: Path) -> None:
    settings = load_settings(database_url=f"sqlite:///{tmp_path}/penstock.db", applications="none")
    app = install_applications(Penstock(settings=settings))
    assert (list(app.kinds), app.applications) == ([], [])


BLOCKED = """
import sys
sys.modules["pypdf"] = None
from penstock import Penstock, load_settings
from penstock.errors import LibraryMissing
from penstock.applications import install_applications
app = install_applications(Penstock(settings=load_settings(database_url="sqlite://")))
print(sorted(guest.application.name for guest in app.applications))
try:
    app.submit("document", {})
except LibraryMissing as error:
    print(error.code, error.message)
try:
    install_applications(Penstock(settings=load_settings(database_url="sqlite://", applications="documents")))
except Exception as error:
    print(error.code, error.message)
from penstock.cli.program import run
print(run(["submit", "document", __file__ if "__file__" in globals() else "x.pdf"]))
"""


def test_one_that_lacks_a_library_says_which_extra_brings_it_also_at_submit(tmp_path: Path) -> None:
    there, at_submit, asked_for, code = run(f"{BLOCKED}", tmp_path).splitlines()
    assert there == "['catalogs', 'products', 'recipes']"
    why = "the application documents needs pypdf, not installed here: install penstock[documents]"
    assert at_submit == f"LIBRARY_MISSING there is no kind 'document' here: {why}"
    assert asked_for == f"LIBRARY_MISSING {why}"
    assert code == "2"


@pytest.fixture
def lacking(tmp_path: Path) -> Iterator[Penstock]:
    """A Penstock with products, and without the others: each of them lacks a library."""
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db", files_directory=tmp_path / "files", jwt_secret=SECRET
    )
    app = Penstock(settings=settings)
    for application in find_applications().values():
        if application.name == "products":
            app.install(application)
        else:
            assert leave_out(app, replace(application, needs=("no_such_library",)))
    yield app
    app.close()


@pytest.fixture
def without_libraries(lacking: Penstock) -> Iterator[Served]:
    """A server of it."""
    with serving(lacking, worker=False) as served:
        yield served


def why(name: str) -> str:
    """What is said of an application that lacks a library."""
    return f"the application {name} needs no_such_library, not installed here: install penstock[{name}]"


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/api/documents/jobs", "documents"),
        ("GET", "/api/documents/jobs/0199", "documents"),
        ("POST", "/api/catalogs", "catalogs"),
        ("POST", "/api/catalogs/0199/scan", "catalogs"),
        ("GET", "/recipes", "recipes"),
        ("PATCH", "/recipes/0199", "recipes"),
        ("POST", "/recipes/parse-url/async", "recipes"),
        ("GET", "/parse-requests/0199", "recipes"),
        ("POST", "/api/v1/recipes/parse", "recipes"),
        ("POST", "/api/kinds/document/jobs", "documents"),
    ],
)
def test_over_http_it_says_which_extra_brings_it(without_libraries: Served, method: str, path: str, name: str) -> None:
    answer = without_libraries.client("ada").request(method, path, json={})
    assert answer.status_code == 503
    assert (answer.json()["code"], answer.json()["message"]) == ("LIBRARY_MISSING", why(name))


def test_an_upload_for_it_says_so_too(without_libraries: Served) -> None:
    upload = {"file": ("a.pdf", b"%PDF-1.4", "application/pdf")}
    answer = without_libraries.client("ada").post("/api/jobs", files=upload, data={"jobType": "document"})
    assert (answer.status_code, answer.json()["code"]) == (503, "LIBRARY_MISSING")
    assert answer.json()["message"] == f"there is no kind 'document' here: {why('documents')}"
    other = without_libraries.client("ada").post("/api/jobs", files=upload, data={"jobType": "letter"})
    assert (other.status_code, other.json()["code"]) == (422, "JOB_TYPE_UNKNOWN")


def test_its_page_says_so_and_others_are_there(without_libraries: Served) -> None:
    page = without_libraries.client("ada").get("/ui/mailbox", headers={"Accept": "text/html"})
    assert page.status_code == 503
    assert "This page needs a library that is not installed" in page.text
    assert "install penstock[recipes]" in page.text
    assert "LIBRARY_MISSING" in page.text
    assert without_libraries.client("ada").get("/api/products/sample.csv").status_code == 200
    assert without_libraries.client("ada").get("/api/unheard-of").json()["code"] == "NO_SUCH_ADDRESS"
    assert "/api/documents/jobs" not in without_libraries.client("ada").get("/openapi.json").json()["paths"]


def test_where_none_takes_files_an_upload_names_all_extras(tmp_path: Path) -> None:
    app = Penstock(settings=load_settings(database_url=f"sqlite:///{tmp_path}/penstock.db", jwt_secret=SECRET))
    for application in find_applications().values():
        leave_out(app, replace(application, needs=("no_such_library",)))
    with serving(app, worker=False) as served:
        answer = served.client("ada").post("/api/jobs", files={"file": ("a.pdf", b"%PDF-1.4")})
        assert (answer.status_code, answer.json()["code"]) == (503, "LIBRARY_MISSING")
        assert "penstock[documents]" in answer.json()["message"]
        assert "penstock[products]" in answer.json()["message"]
        assert served.client("ada").get("/api/jobs").status_code == 200
    app.close()


def test_at_submit_the_code_is_the_same(lacking: Penstock) -> None:
    with pytest.raises(LibraryMissing) as refused:
        lacking.submit("recipe", {})
    assert (refused.value.code, refused.value.message) == (
        "LIBRARY_MISSING", f"there is no kind 'recipe' here: {why('recipes')}",
    )  # fmt: skip


def test_each_names_the_addresses_of_its_routes_and_pages() -> None:
    for name, application in find_applications().items():
        app = Penstock(settings=load_settings(database_url="sqlite://"))
        app.install(application)
        [guest] = app.applications
        pages, api = guest.pages(), FastAPI()
        for routes in guest.routes():
            api.include_router(routes)
        paths = list(api.openapi()["paths"])
        paths += [f"/ui/{page.address}" for page in pages.pages] if pages is not None else []
        for path in paths:
            assert any(f"{path}/".startswith(f"{address}/") for address in application.addresses), (name, path)
        for address in application.addresses:
            assert any(f"{path}/".startswith(f"{address}/") for path in paths), (name, address)


COMMAND = """
import sys
sys.modules["lxml"] = None
from penstock.cli.program import run
sys.stderr = sys.stdout
print(run(["import-recipe-jobs", "sqlite:///old.db"]))
print(run(["worker", "--kind", "recipe"]))
print(run(["submit", "recipe"]))
"""


def test_its_commands_say_so_too(tmp_path: Path) -> None:
    lines = run(COMMAND, tmp_path).splitlines()
    reason = "the application recipes needs lxml, not installed here: install penstock[recipes]"
    at_kind = f"there is no kind 'recipe' here: {reason}"
    assert lines == [
        f"penstock: {reason} (LIBRARY_MISSING)", "2",
        f"penstock: {at_kind} (LIBRARY_MISSING)", "2",
        f"penstock: {at_kind} (LIBRARY_MISSING)", "2",
    ]  # fmt: skip


def test_a_library_that_goes_missing_later_is_not_blamed_on_the_document(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 startxref")
    program = """
import sys
sys.modules["pypdf"] = None
from pathlib import Path
from penstock import Permanent
from penstock_apps.documents.reading import extract
try:
    extract(Path("a.pdf"), declared_name="a.pdf")
except Permanent as error:
    print(error.code, error.message)
"""
    said = run(program, tmp_path)
    assert said.startswith("DOCUMENT_LIBRARY_MISSING")
    assert "install penstock[documents]" in said


def test_a_worker_does_not_pay_for_pages_or_commands(tmp_path: Path) -> None:
    program = """
import sys
from penstock.applications import app
app.kinds, app.applications
heavy = ("fastapi", "jinja2", "typer", "uvicorn", "PIL", "lxml", "pypdf", "zxingcpp", "recipe_scrapers")
print([name for name in heavy if name in sys.modules])
"""
    assert run(program, tmp_path) == "[]\n"


def test_an_unknown_kind_is_said_as_before() -> None:
    with pytest.raises(KindUnknown, match="known: none"):
        Penstock(settings=load_settings(database_url="sqlite://")).kinds.get("document")
