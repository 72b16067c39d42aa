"""What a module's source says of a name: its signature, its fields, its docstrings. Little is imported for it.

The source and not ``inspect``: annotations stay as they were written, whichever Python makes the page.
"""

from __future__ import annotations

import ast
import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
_LONGEST_LINE = 100


@dataclass(frozen=True, slots=True)
class Named:
    """One public name, or one member of a class."""

    name: str
    kind: str
    signature: str = ""
    doc: str = ""
    bases: tuple[str, ...] = ()
    members: tuple[Named, ...] = ()
    arguments: tuple[str, ...] = ()
    answer: str = ""

    def called(self, name: str, *, answers: bool = True) -> str:
        """How it is called, on one line or with a line for each argument."""
        answer = f" -> {self.answer}" if answers and self.answer else ""
        line = f"{name}({', '.join(self.arguments)}){answer}"
        if len(line) <= _LONGEST_LINE:
            return line
        return "\n".join([f"{name}(", *(f"    {one}," for one in self.arguments), f"){answer}"])

    def of_kind(self, *kinds: str) -> list[Named]:
        """Its members of some kinds, in the order of the source."""
        return [one for one in self.members if one.kind in kinds]


@cache
def module(name: str) -> ast.Module:
    """A module's tree."""
    path = SOURCE.joinpath(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def public_names(name: str) -> dict[str, str]:
    """Each public name of a module and the module it is at home in, from the imports that type checkers read.

    A module that is no package is the home of its names.
    """
    if not SOURCE.joinpath(*name.split(".")).is_dir():
        imported = {
            alias.name: node.module
            for node in module(name).body
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        return {public: imported.get(public, name) for public in importlib.import_module(name).__all__}
    return {
        alias.name: node.module
        for outer in module(name).body
        if isinstance(outer, ast.If)
        for node in outer.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def find(module_name: str, name: str) -> Named:
    """The definition of ``name`` at the top of a module."""
    for node, following in _pairs(module(module_name).body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return _class(node) if isinstance(node, ast.ClassDef) else _function(node)
        if name in _assigned(node):
            return Named(name, "constant", _annotated(node), _text_of(following))
    raise SystemExit(f"tools/reference: {module_name} has no {name}")


def _pairs(body: list[ast.stmt]) -> list[tuple[ast.stmt, ast.stmt | None]]:
    return list(zip(body, [*body[1:], None], strict=True))


def _class(node: ast.ClassDef) -> Named:
    members: list[Named] = []
    for one, following in _pairs(node.body):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            members.append(_function(one, method=True))
        elif names := _assigned(one):
            kind = "field" if isinstance(one, ast.AnnAssign) else "value"
            members.append(Named(names[0], kind, _annotated(one), _text_of(following)))
    shown = tuple(one for one in members if not one.name.startswith("_") or one.name == "__init__")
    bases = tuple(ast.unparse(base) for base in node.bases)
    return Named(node.name, "class", doc=ast.get_docstring(node) or "", bases=bases, members=shown)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, *, method: bool = False) -> Named:
    decorators = [ast.unparse(one) for one in node.decorator_list]
    answer = "" if node.returns is None else _type(node.returns)
    kind = "property" if "property" in decorators else "method" if method else "function"
    arguments = _arguments(node.args, method=method)
    doc = ast.get_docstring(node) or ""
    return Named(node.name, kind, answer if kind == "property" else "", doc, arguments=arguments, answer=answer)


def _arguments(given: ast.arguments, *, method: bool) -> tuple[str, ...]:
    """Each argument as it is written, without ``self``."""
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + [*given.defaults]
    parts = [_argument(one, default) for one, default in zip(positional, defaults, strict=True)]
    if given.posonlyargs:
        parts.insert(len(given.posonlyargs), "/")
    if given.vararg is not None:
        parts.append(f"*{_argument(given.vararg, None)}")
    elif given.kwonlyargs:
        parts.append("*")
    parts += [_argument(one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg is not None:
        parts.append(f"**{_argument(given.kwarg, None)}")
    return tuple(parts[1:] if method else parts)


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    text = one.arg if one.annotation is None else f"{one.arg}: {_type(one.annotation)}"
    if default is None:
        return text
    return f"{text}{' = ' if one.annotation is not None else '='}{ast.unparse(default)}"


def _type(annotation: ast.expr) -> str:
    """A type as people say it: a class with a method ``list`` has to call Python's own by its whole name."""
    return ast.unparse(annotation).replace("builtins.list", "list")


def _assigned(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [one.id for one in node.targets if isinstance(one, ast.Name)]
    return []


def _annotated(node: ast.stmt) -> str:
    """Type and value of an assignment, as far as they say something."""
    if isinstance(node, ast.AnnAssign):
        value = "" if node.value is None else f" = {ast.unparse(node.value)}"
        return ast.unparse(node.annotation) + (value if len(value) <= 40 else "")
    value = ast.unparse(node.value) if isinstance(node, ast.Assign) else ""
    return value if len(value) <= 40 else ""


def _text_of(node: ast.stmt | None) -> str:
    """The text under an assignment, which tools read as its docstring."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return ""
