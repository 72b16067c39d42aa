"""The conformance suite is for any database: it names none, and every operation has its file there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import penstock
from tests.conformance.databases import DATABASES, can

SOURCE = Path(penstock.__file__).parent
SUITE = Path(__file__).parents[1] / "conformance"
LIST = SUITE / "databases.py"
"""Where databases are named."""
NAMES = ("sqlite", "postgres", "psycopg", "mysql", "mariadb", "memory_store", "file_store")
MOST_LINES = 400
SHARED = {"tests.on_store", "tests.stores", "tests.waiting", "tests.properties.engine_kinds"}
"""What the suite takes from the rest of the tests; the list only ever shrinks."""
WITHOUT_A_FILE: dict[str, str] = {}
"""Operations that have no file of their own in the suite, and where they are tested; the list only ever shrinks."""


def suite() -> Iterator[tuple[str, ast.Module]]:
    """All of it but the list."""
    for path in sorted(SUITE.rglob("*.py")):
        if path != LIST:
            yield path.name, ast.parse(path.read_text())


def named_databases(tree: ast.Module) -> list[str]:
    """Names of a database in code: what is imported, called, compared or said; prose may speak of them."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    words = (word for node in ast.walk(tree) if id(node) not in prose for word in _words(node))
    return [word for word in words if any(name in word.lower() for name in NAMES)]


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            yield name
        case ast.ImportFrom(module=str(name)) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name


def questions(tree: ast.Module) -> set[str]:
    """What the tests of a file need of a database."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {
        argument.value
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "needs"
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_no_test_names_a_database() -> None:
    found = {name: named for name, tree in suite() if (named := named_databases(tree))}
    assert found == {}, "say what the test needs with @needs(…), or move it to tests/<database>"


def test_a_name_is_found_wherever_it_stands() -> None:
    written = (
        "if store.dialect.name == 'sqlite': pass",
        "import sqlite3",
        "from psycopg import errors",
        "def test(postgres_store): pass",
        "only_sqlite = 1",
    )
    assert [len(named_databases(ast.parse(text))) for text in written] == [1] * len(written)
    assert named_databases(ast.parse('"""As SQLite does."""')) == []


def test_what_a_test_needs_some_databases_have_and_some_have_not() -> None:
    needed = set().union(*(questions(tree) for _, tree in suite()))
    assert needed
    for question in needed:
        assert {can(database, question) for database in DATABASES} == {False, True}, question


def test_every_dialect_is_in_the_list() -> None:
    folders = {path.parent.name for path in (SOURCE / "store" / "dialects").glob("*/dialect.py")}
    assert {database.dialect for database in DATABASES} == folders


def test_every_operation_has_its_file() -> None:
    operations = {path.stem for path in (SOURCE / "operations").glob("*.py")} - {"__init__"}
    files = {path.stem.removeprefix("test_") for path in SUITE.glob("test_*.py")}
    missing = {name for name in operations if name not in files}
    assert missing == WITHOUT_A_FILE.keys(), "tests/conformance/test_<operation>.py"


def test_files_are_short() -> None:
    long = {path.name: lines for path in SUITE.rglob("*.py") if (lines := path.read_text().count("\n")) > MOST_LINES}
    assert long == {}, "split it by what is asked: test_<operation>_<aspect>.py"


def test_the_suite_stands_by_itself() -> None:
    imported = {
        node.module
        for _, tree in suite()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.")
    }
    assert {name for name in imported if name and not name.startswith("tests.conformance.")} == SHARED
