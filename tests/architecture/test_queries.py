"""Operations and queries meet by signatures: what goes in and what comes out has a type, and the SQL stays beneath."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "penstock"
QUERIES = SOURCES / "store" / "queries"
PACKAGE = "penstock.store.queries"
TOOLS = {"__init__", "built_once", "handed_rows", "visibility"}
"""What queries are made of."""
ABOVE_THE_STORE = sorted(
    path for path in SOURCES.rglob("*.py") if not path.is_relative_to(SOURCES / "store") and "testing" not in path.parts
)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def modules() -> list[str]:
    return sorted(path.stem for path in QUERIES.glob("*.py") if path.stem not in TOOLS)


def public_functions(module: str) -> Iterator[ast.FunctionDef]:
    for node in tree_of(QUERIES / f"{module}.py").body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def is_query(function: ast.FunctionDef) -> bool:
    """Does it take a transaction? The others are parts of statements, which queries share."""
    first = function.args.args[:1]
    return [ast.unparse(argument.annotation) for argument in first if argument.annotation] == ["Transaction"]


def queries(module: str) -> list[ast.FunctionDef]:
    return [function for function in public_functions(module) if is_query(function)]


def public_rows(module: str) -> Iterator[ast.ClassDef]:
    for node in tree_of(QUERIES / f"{module}.py").body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node


def names_in(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


@pytest.mark.parametrize("module", modules())
def test_a_query_says_what_goes_in_and_what_comes_out(module: str) -> None:
    assert queries(module), f"{module} has no query: what queries are made of is listed in TOOLS"
    for function in queries(module):
        arguments = function.args
        assert arguments.vararg is None, function.name
        assert arguments.kwarg is None, function.name
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            assert argument.annotation is not None, f"{function.name}: {argument.arg}"
            assert "Any" not in names_in(argument.annotation), f"{function.name}: {argument.arg}"
        assert function.returns is not None, function.name
        assert "Any" not in names_in(function.returns), function.name


@pytest.mark.parametrize("module", modules())
def test_a_row_says_what_is_in_it(module: str) -> None:
    for row in public_rows(module):
        for field in row.body:
            if isinstance(field, ast.AnnAssign):
                assert "Any" not in names_in(field.annotation), f"{row.name}: {ast.unparse(field)}"


@pytest.mark.parametrize("path", sorted((SOURCES / "operations").glob("*.py")), ids=lambda path: path.stem)
def test_no_operation_knows_the_names_of_parameters(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not node.value.startswith("the_"), f"{path.name}:{node.lineno}: {node.value!r}"


def imported_of_queries(path: Path) -> Iterator[tuple[str, str]]:
    """What a module takes of the queries: the module it is in, and its name."""
    tree = tree_of(path)
    named: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            named |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(f"{PACKAGE}."):
            for alias in node.names:
                yield node.module.removeprefix(f"{PACKAGE}."), alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in named:
            yield named[node.value.id], node.attr


def offered(module: str) -> set[str]:
    """Queries, rows, and the names of tuples that are handed in by the thousand."""
    body = tree_of(QUERIES / f"{module}.py").body
    tuples = {
        target.id
        for node in body
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("tuple[")
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {query.name for query in queries(module)} | {row.name for row in public_rows(module)} | tuples


@pytest.mark.parametrize("path", ABOVE_THE_STORE, ids=lambda path: str(path.relative_to(SOURCES)))
def test_who_is_above_the_store_takes_queries_and_rows_and_no_part_of_a_statement(path: Path) -> None:
    for module, name in imported_of_queries(path):
        assert module not in TOOLS, f"{path.name} takes {name} of {module}"
        assert name in offered(module), f"{path.name} takes {name} of {module}, which is no query and no row"
