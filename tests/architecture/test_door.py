"""The door: few names at the root, the others public by module, and none that is loaded before it is used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

SOURCE = Path(penstock.__file__).parent
PUBLIC = (
    "penstock", "penstock.app", "penstock.application",
    "penstock.celery", "penstock.clock", "penstock.errors", "penstock.exports", "penstock.http",
    "penstock.ingest", "penstock.lifecycle", "penstock.messages", "penstock.private_files", "penstock.settings",
    "penstock.store", "penstock.samples", "penstock.server", "penstock.testing", "penstock.worker",
)  # fmt: skip
LAZY = [name for name in PUBLIC if importlib.util.find_spec(name).submodule_search_locations]  # type: ignore[union-attr]


def test_the_root_has_the_names_that_most_programs_need() -> None:
    assert penstock.__all__ == [
        "Backoff", "Caller", "Item", "ItemContext", "ItemStatus", "Job", "JobContext", "JobState", "Kind", "NotFound",
        "Penstock", "PenstockError", "Permanent", "Planned", "Policy", "Retryable", "RunsIn", "SYSTEM", "Settings",
        "Skip", "Submission", "Worker", "admin", "load_settings", "owner",
    ]  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__all__
    assert len(set(module.__all__)) == len(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is not None
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("name", LAZY)
def test_the_type_checker_is_told_the_same_names(name: str) -> None:
    module = importlib.import_module(name)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    told = {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(told) == sorted(module.__all__)
    for public, home in told.items():
        assert getattr(importlib.import_module(str(home)), public) is getattr(module, public)


def test_no_name_has_two_meanings() -> None:
    homes: dict[str, object] = {}
    for name in PUBLIC:
        module = importlib.import_module(name)
        for public in module.__all__:
            assert homes.setdefault(public, getattr(module, public)) is getattr(module, public), public


def test_an_unknown_name_is_an_error() -> None:
    for name in LAZY:
        with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Nothing'"):
            _ = importlib.import_module(name).Nothing


def test_an_error_class_does_not_load_a_database() -> None:
    code = "import sys, penstock, penstock.lifecycle, penstock.app, penstock.http; from penstock import Permanent; "
    code += (
        "print([name for name in ('sqlalchemy', 'pydantic', 'fastapi', 'typing_extensions') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "[]"
