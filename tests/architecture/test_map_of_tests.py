"""The map in CONTRIBUTING says where a test is: each folder of the tests is on it, and nothing that is gone."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
CONTRIBUTING = TESTS.parent / "CONTRIBUTING.md"


def test_every_folder_is_on_the_map() -> None:
    _, _, section = CONTRIBUTING.read_text().partition("### Where a test is\n")
    told = set(re.findall(r"`tests/(\w+)(?:/[^`]*)?`", section.partition("\n### ")[0]))
    assert told == {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
