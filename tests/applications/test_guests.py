"""Applications are guests: found, chosen, left out with a reason, and loaded no further than they are needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock import ConfigurationError, KindUnknown, Penstock, load_settings
from penstock.application import resolve
from penstock.applications import choose_applications, find_applications, install_applications

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
from penstock import KindUnknown, Penstock, load_settings
from penstock.applications import install_applications
app = install_applications(Penstock(settings=load_settings(database_url="sqlite://")))
print(sorted(guest.application.name for guest in app.applications))
try:
    app.submit("document", {})
except KindUnknown as error:
    print(error.message)
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
    assert at_submit == f"there is no kind 'document' here: {why}"
    assert asked_for == f"LIBRARY_MISSING {why}"
    assert code == "2"


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
