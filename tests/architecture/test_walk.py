"""How far a reader walks to follow a CSV from its upload to its export: the list in docs/architecture.md only shrinks.

It names the functions that have to be opened, in the order of the calls; what is left out of it is said there.
"""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "architecture.md"
MAX_FUNCTIONS = 60  # one more than there were: a file is looked at first, and kept afterwards
MAX_CHANGES = 31


def walk() -> list[tuple[Path, str]]:
    """The functions of the walk, with their files."""
    _, _, section = MAP.read_text().partition("\n## What happens to an uploaded CSV\n")
    steps = re.findall(r"\[`([\w.]+)`\]\(\.\./(src/[\w/]+\.py)\)", section.partition("\n## ")[0])
    return [(ROOT / file, name) for name, file in steps]


def package_of(file: Path) -> str:
    """``penstock/worker``, say; ``penstock_apps/products`` for an application."""
    return "/".join(file.relative_to(ROOT / "src").parts[:2])


def functions_of(file: Path) -> set[str]:
    """The functions and methods of a module, methods with their class."""
    functions: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.add(node.name)
        elif isinstance(node, ast.ClassDef):
            functions |= {
                f"{node.name}.{member.name}"
                for member in node.body
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return functions


def test_what_the_walk_names_is_there() -> None:
    missing = [f"{file.name}: {name}" for file, name in walk() if name not in functions_of(file)]
    assert walk()
    assert missing == []


def test_nothing_is_named_twice() -> None:
    assert len(set(walk())) == len(walk())


def test_the_walk_only_shrinks() -> None:
    packages = [package_of(file) for file, _ in walk()]
    changes = sum(before != after for before, after in pairwise(packages))
    assert len(packages) <= MAX_FUNCTIONS, f"{len(packages)} functions: call the next one directly, or make one verb"
    assert changes <= MAX_CHANGES, f"{changes} changes of package: no round trips"
