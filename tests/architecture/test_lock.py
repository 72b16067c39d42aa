"""requirements.lock pins what pyproject.toml asks for, with hashes, and names no host."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK, re.MULTILINE)}


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    return [requirement for group in groups for text in group if (requirement := Requirement(text)).name != "penstock"]


@pytest.mark.parametrize("requirement", declared(), ids=lambda requirement: requirement.name)
def test_every_declared_dependency_is_pinned(requirement):
    pin = PINS.get(canonicalize_name(requirement.name))
    assert pin is not None, f"{requirement.name} is not in requirements.lock: run `make lock`"
    assert requirement.specifier.contains(pin), (
        f"{requirement.name} {pin} is locked, {requirement} is asked for: run `make lock`"
    )


def test_every_pin_has_hashes():
    assert LOCK.count("--hash=sha256:") >= len(PINS) > 0
    assert not re.search(r"^[\w.-]+==[^\\\n]*$", LOCK, re.MULTILINE), "a pin without a hash"


def test_the_lock_names_no_host():
    assert "://" not in LOCK
