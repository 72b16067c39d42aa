"""What an application's jobs hold has a type: ``Any`` is left for what a library does not say.

A payload is JSON and says so (``penstock.lifecycle.JSON``), or better, is a TypedDict of the application's ``payloads``
module, which its kind names: ``Kind[Params, Input, Result]``. The list below only shrinks.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

APPLICATIONS = Path(__file__).parents[2] / "src" / "penstock_apps"
ALLOWED = {
    "catalogs/repository.py": 1,  # rows of SQLAlchemy
    "documents/reading/markup.py": 2,  # a parser's target: the stubs of lxml ask for more than it calls
    "documents/reading/pdf_metering.py": 1,  # a method of pypdf that is replaced
    "recipes/repository.py": 2,  # rows and statements of SQLAlchemy
}
"""How often a module says ``Any``, and why it has to."""
TYPED = frozenset(("ItemContext", "JobContext", "Kind"))
"""What holds payloads, and says of which type."""


def test_any_is_said_only_where_a_library_has_no_type() -> None:
    counts = Counter[str]()
    for path in sorted(APPLICATIONS.rglob("*.py")):
        name = path.relative_to(APPLICATIONS).as_posix()
        counts[name] += sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(_tree(path)))
    assert {name: count for name, count in counts.items() if count} == ALLOWED, "the list only shrinks"


def test_contexts_and_kinds_say_what_they_hold() -> None:
    bare = [
        f"{path.relative_to(APPLICATIONS)}:{line}: {name}"
        for path in sorted(APPLICATIONS.rglob("*.py"))
        for line, name in bare_uses(_tree(path))
    ]
    assert bare == [], "say the types: ItemContext[Params, Input], JobContext[Params, Result of an item]"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("def process(item: ItemContext) -> int: ...", 1),
        ("def plan(job: 'JobContext') -> None: ...", 1),
        ("class A:\n kind: Kind", 1),
        ("def add(kind: Kind | None) -> Kind: ...", 2),
        ("def process(item: ItemContext[Params, Input]) -> int: ...", 0),
        ("kind: Kind[Params, Input, Result] = Kind.of('a', b, c)", 0),
    ],
)
def test_the_test_sees_what_it_looks_for(code: str, count: int) -> None:
    assert len(bare_uses(ast.parse(code))) == count


def bare_uses(tree: ast.Module) -> list[tuple[int, str]]:
    """Annotations that name a generic type without its parameters."""
    annotations: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            annotations.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            annotations.append(node.returns)
    return [use for annotation in annotations for use in _bare(_unquote(annotation))]


def _unquote(annotation: ast.expr) -> ast.expr:
    match annotation:
        case ast.Constant(value=str(text)):
            return ast.parse(text, mode="eval").body
    return annotation


def _bare(annotation: ast.expr) -> list[tuple[int, str]]:
    match annotation:
        case ast.Name(id=name) if name in TYPED:
            return [(annotation.lineno, name)]
        case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in TYPED:
            return _bare(inner)
    return [use for child in ast.iter_child_nodes(annotation) if isinstance(child, ast.expr) for use in _bare(child)]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
