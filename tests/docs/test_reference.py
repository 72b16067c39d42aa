"""docs/reference says what the code says now."""

from __future__ import annotations

import inspect

import pytest

from penstock import Penstock
from penstock.app import BoundApp, Files, Items, Jobs, Messages, Schedules, System
from tools.generate_reference import PAGES, REFERENCE


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_makes(name):
    path = REFERENCE / name
    assert path.exists(), f"docs/reference/{name} is missing: run `make docs`"
    assert path.read_text(encoding="utf-8") == PAGES[name](), (
        f"docs/reference/{name} is out of date: run `make docs` and commit what it writes"
    )


def test_nothing_else_lies_beside_the_generated_pages():
    assert {path.name for path in REFERENCE.iterdir()} == set(PAGES)


@pytest.mark.parametrize("made", [Penstock, BoundApp, Jobs, Items, Files, Messages, Schedules, System])
def test_every_method_is_in_the_reference(made: type) -> None:
    page = (REFERENCE / "api.md").read_text(encoding="utf-8")
    methods = [name for name, one in inspect.getmembers(made, inspect.isfunction) if not name.startswith("_")]
    assert methods
    assert [name for name in methods if f"#### {made.__name__}.{name}\n" not in page] == []
