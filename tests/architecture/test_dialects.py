"""Which database it is, is asked in ``store/dialects`` alone: everybody else asks the dialect what it can do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import penstock
from penstock.store.dialects.dialect import Dialect, dialect_of

SOURCE = Path(penstock.__file__).parent
AT_HOME = (SOURCE / "store" / "dialects", SOURCE / "store" / "migrations", SOURCE / "testing")
"""Each database's own folder; the history of the schema; and the tests' private servers."""
NAMES = ("sqlite", "postgresql", "mysql", "mariadb")
DATABASES = ("sqlite", "postgresql")
EXCEPTIONS: dict[str, int] = {}
"""How many such decisions a module still has; the list only ever shrinks."""
IMPORTS_OF_ONE_DATABASE: dict[str, str] = {}
"""Modules outside that import one database's own; the list only ever shrinks."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in SOURCE.rglob("*.py"):
        if not any(path.is_relative_to(home) for home in AT_HOME):
            yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())


def names_a_database(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.lower().startswith(NAMES)
        for part in ast.walk(node)
    )


def decisions(tree: ast.Module) -> int:
    """Comparisons with a database's name, and tables of what to do by it."""
    compared = (node for node in ast.walk(tree) if isinstance(node, ast.Compare) and names_a_database(node))
    matched = (node for node in ast.walk(tree) if isinstance(node, ast.MatchValue) and names_a_database(node))
    by_name = (
        key
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and key.value in NAMES
    )
    return sum(1 for group in (compared, matched, by_name) for _ in group)


def test_no_module_decides_by_the_name_of_a_database() -> None:
    found = {name: count for name, tree in modules() if (count := decisions(tree))}
    assert found == EXCEPTIONS, "ask the dialect instead, and give it a question for this where there is none"


def test_no_module_knows_one_databases_own_modules() -> None:
    found = {
        name: imported
        for name, tree in modules()
        for node in ast.walk(tree)
        for imported in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
        if imported.startswith(tuple(f"penstock.store.dialects.{database}" for database in DATABASES))
    }
    assert found == IMPORTS_OF_ONE_DATABASE


def test_such_a_decision_is_found() -> None:
    written = (
        "if store.dialect.name == 'sqlite': pass",
        "x = {'postgresql': 1}",
        "match name:\n    case 'sqlite': pass",
    )
    assert [decisions(ast.parse(text)) for text in written] == [1, 1, 1]
    assert decisions(ast.parse("url = 'sqlite:///penstock.db'")) == 0


def test_each_database_answers_the_whole_contract() -> None:
    asked = {name for name in (*vars(Dialect), *Dialect.__annotations__) if not name.startswith("_")}
    for name in DATABASES:
        for dialect in (dialect_of(name), dialect_of(name, has_manual_clock=True)):
            assert {question for question in asked if not hasattr(dialect, question)} == set()
            assert dialect.name == name
