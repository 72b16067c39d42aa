"""The list of the applications' variables is what they read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import penstock_apps
from penstock_apps.variables import VARIABLES, Variable

SOURCE = Path(penstock_apps.__file__).parent
INGEST = SOURCE.parent / "penstock" / "ingest" / "sources"
NAME = re.compile(r'"((?:PENSTOCK|RECIPE|KAFKA|PRODUCT|MAX_ATTEMPTS|AWS|DOCUMENTS)_[A-Z_]+)"')
CODES = {"RECIPE_NOT_FOUND", "PRODUCT_NOT_FOUND"}
OURS = {"PENSTOCK_INGEST_ROOTS"}


def test_every_variable_an_application_reads_is_listed_and_no_other():
    files = [*SOURCE.rglob("*.py"), *INGEST.rglob("*.py")]
    read = {name for one in files if one.name != "variables.py" for name in NAME.findall(one.read_text("utf-8"))}
    listed = [one.name for variables in VARIABLES.values() for one in variables]
    assert len(set(listed)) == len(listed)
    documents = {name for name in listed if name.startswith("DOCUMENTS_")}
    assert read - CODES - OURS == set(listed) - documents


def test_a_secret_is_never_shown(monkeypatch: pytest.MonkeyPatch):
    one = Variable("PENSTOCK_TEST_SECRET", "", "a secret", secret=True)
    assert one.value == ""
    monkeypatch.setenv(one.name, "hunter2")
    assert one.value == "***"
    assert Variable(one.name, "", "not one").value == "hunter2"
