"""Who acts is never forgotten where Penstock works for people.

A :class:`penstock.Penstock` acts as the system. The server, the pages, the command line and the applications do things
for somebody: they take jobs, items and files from ``app.acting_as(caller)``, where the caller is said, be it SYSTEM.
``app.system`` and ``app.messages`` belong to nobody and are used as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
SERVING = [
    path
    for place in ("penstock/http", "penstock/web", "penstock/cli", "penstock/server.py", "penstock_apps")
    for path in sorted((SOURCE / place).rglob("*.py") if (SOURCE / place).is_dir() else [SOURCE / place])
    if path.exists()
]
UNBOUND = frozenset(("submit", "submit_many", "jobs", "items", "files"))
"""What an app does in the name of the system."""
USUAL = frozenset(("app", "_app"))
"""What an app is called, whether or not it says that it is one."""


def test_nothing_is_done_in_the_name_of_the_system_unsaid() -> None:
    makers = frozenset(name for path in SERVING for name in _makers(_tree(path)))
    fields = frozenset(name for path in SERVING for name in _fields(_tree(path)))
    assert {"open_app", "_app"} <= makers | fields | USUAL, "the names of apps are found"
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in SERVING
        for line, text in unbound_uses(_tree(path), makers, fields)
    ]
    assert found == [], "say who acts: app.acting_as(caller), or app.acting_as(SYSTEM)"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("def f(app): return app.jobs.get(1)", 1),
        ("def f(shop: Penstock): return shop.submit('k')", 1),
        ("def f(shop: 'Penstock | None'): return shop.items.list(1)", 1),
        ("class A:\n def f(self): return self._app.files.get(1)", 1),
        ("class A:\n shop: Penstock\n def f(self): return self.shop.jobs", 1),
        ("with open_app(None) as shop: shop.jobs.list()", 1),
        ("def f():\n shop = Penstock()\n return lambda: shop.jobs.list()", 1),
        ("def f(service): return service.app.jobs.page()", 1),
        ("def f(app): return app.acting_as(SYSTEM).jobs.get(1)", 0),
        ("def f(app): return app.system.workers()", 0),
        ("def f(app): mine = app.acting_as(x)\n", 0),
        ("def f(mine): return mine.jobs.get(1)", 0),
        ("def f(values: dict): return values.items()", 0),
    ],
)
def test_the_test_sees_what_it_looks_for(code: str, count: int) -> None:
    tree = ast.parse(code)
    assert len(list(unbound_uses(tree, frozenset(["open_app"]), frozenset(_fields(tree))))) == count


def unbound_uses(tree: ast.Module, makers: frozenset[str], fields: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Where a name that holds an app is asked for jobs, items or files, or to submit."""
    names = USUAL | frozenset(_names(tree, makers))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in UNBOUND:
            match node.value:
                case ast.Name(id=name) if name in names:
                    yield node.lineno, ast.unparse(node)
                case ast.Attribute(attr=name) if name in fields | USUAL:
                    yield node.lineno, ast.unparse(node)
                case ast.Call(func=ast.Name(id=name)) if name in makers or name == "Penstock":
                    yield node.lineno, ast.unparse(node)


def _names(tree: ast.Module, makers: frozenset[str]) -> Iterator[str]:
    """The names of a module that are said to be an app, or are given one."""

    def makes(value: ast.AST) -> bool:
        match value:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in makers or name == "Penstock"
        return False

    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as annotation) if _is_app(annotation):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if _is_app(annotation):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if makes(value):
                yield name
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)) if makes(value):
                yield name


def _makers(tree: ast.Module) -> Iterator[str]:
    """Functions that return an app, or yield one to a ``with``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            returns = node.returns.slice if isinstance(node.returns, ast.Subscript) else node.returns
            if _is_app(returns):
                yield node.name


def _fields(tree: ast.Module) -> Iterator[str]:
    """Attributes that are said to be an app."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and _is_app(line.annotation):
                    yield line.target.id


def _is_app(annotation: ast.expr) -> bool:
    return ast.unparse(annotation).strip("'\"").removesuffix(" | None") == "Penstock"


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
