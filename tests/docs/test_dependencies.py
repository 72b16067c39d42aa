"""docs/decisions/0013-dependencies.md has a line for each declared package, and for no other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "decisions" / "0013-dependencies.md").read_text(encoding="utf-8")


def test_the_page_names_what_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    declared = {Requirement(text).name for group in groups for text in group} - {"penstock"}
    named = set(re.findall(r"^\| ([\w.-]+) \|", PAGE, re.MULTILINE)) - {"package"}
    assert named == declared, "a package is added to or removed from 0013-dependencies.md with pyproject.toml"
