"""The glossary names things that exist, in alphabetical order."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^- \*\*(.+?)\*\*(.*?)(?=^- \*\*|\Z)", GLOSSARY, re.MULTILINE | re.DOTALL)
# In the brackets behind a term, or at the end of an entry: names in backticks and nothing else.
_NAMED = re.compile(r"\((`\w+`(?:, `\w+`)*)\)")
IDENTIFIERS = sorted(
    {name for _, text in ENTRIES for group in _NAMED.findall(text) for name in re.findall(r"\w+", group)}
)


@cache
def names_in_source() -> set[str]:
    """Every name that src defines: modules, classes, functions, arguments, attributes, constants and columns."""
    names: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        names.add(path.stem)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    names.add(node.name)
                case ast.arg():
                    names.add(node.arg)
                case ast.Name(ctx=ast.Store()):
                    names.add(node.id)
                case ast.Call(func=ast.Name(id="Column" | "_counter"), args=[ast.Constant(value=str() as column), *_]):
                    names.add(column)
    return names


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_the_identifier_exists(identifier):
    assert identifier in names_in_source(), f"docs/glossary.md names `{identifier}`, which src does not have any more"


def test_the_terms_are_in_alphabetical_order():
    terms = [term.lower() for term, _ in ENTRIES]
    assert len(terms) > 50
    assert terms == sorted(terms)
