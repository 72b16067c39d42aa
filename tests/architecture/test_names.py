"""A name says what it holds: no lone participle, no `one` and no `most` names a variable, a function or a module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "penstock"
APPLICATIONS = SOURCES.with_name("penstock_apps")

PARTICIPLES = {
    "begun", "broken", "brought", "built", "caught", "chosen", "drawn", "driven", "fallen", "fed", "forgotten", "found",
    "given", "gone", "got", "grown", "heard", "held", "kept", "known", "laid", "left", "made", "meant", "met", "paid",
    "said", "seen", "sent", "shown", "spent", "spoken", "stuck", "taken", "thought", "thrown", "told", "understood",
    "woken", "written",
}  # fmt: skip
"""Those that do not end in -ed."""
POINTERS = {"one", "ones", "most", "its"}
"""Words that point at something without naming it."""
NO_PARTICIPLES = {"embed", "exceed", "feed", "hundred", "need", "proceed", "red", "seed", "speed", "succeed"}
FIELD_WORDS = {
    "abandoned", "canceled", "committed", "completed", "created", "failed", "finished", "killed", "paused", "processed",
    "queued", "retried", "skipped", "succeeded",
    "orphaned", "planned", "postponed", "released", "returned", "throttled", "unsubscribed",
    "bounded", "compiled", "elapsed", "expected", "normalized", "pickled", "required",
}  # fmt: skip
"""States and counters of jobs and items, outcomes of a try, and what the field calls so."""

EXCEPTIONS = {
    ("clock.py", "held"),
    ("http/errors.py", "documented"),
    ("http/system/schemas.py", "held"),
    ("ingest/text.py", "declared"),
    ("worker/context.py", "stopped"),
    # Members of what the applications' jobs hold and answer.
    ("penstock_apps/catalogs/folders.py", "modified"),
    ("penstock_apps/catalogs/payloads.py", "changed"),
    ("penstock_apps/catalogs/payloads.py", "modified"),
    ("penstock_apps/catalogs/payloads.py", "removed"),
    ("penstock_apps/catalogs/payloads.py", "unchanged"),
    ("penstock_apps/catalogs/photo_repository.py", "modified"),
    ("penstock_apps/documents/payloads.py", "modified"),
    ("penstock_apps/documents/payloads.py", "truncated"),
    ("penstock_apps/documents/reading/collected_text.py", "truncated"),
    ("penstock_apps/documents/reading/docx.py", "modified"),
    ("penstock_apps/documents/reading/findings.py", "modified"),
    ("penstock_apps/documents/reading/findings.py", "truncated"),
    ("penstock_apps/documents/reading/pdf.py", "modified"),
    ("penstock_apps/documents/reading/pdf.py", "truncated"),
    ("penstock_apps/documents/reading/plain_text.py", "truncated"),
    ("penstock_apps/products/schemas.py", "taken"),
    ("penstock_apps/recipes/importing.py", "imported"),
    ("penstock_apps/recipes/payloads.py", "imported"),
}
"""Names that users, answers or other files have, and have to change together. This list only shrinks."""


def is_enum(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases)


def names_in(node: ast.AST) -> Iterator[str]:
    """Everything that is given a name below a node; members of an enum are values, and have words of their own."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
        if not is_enum(child):
            yield from names_in(child)


def says_nothing(name: str) -> bool:
    """Is it a lone participle, or a word that only points?

    >>> [says_nothing(name) for name in ("one", "_kept", "claimed", "kept_rows", "failed", "feed")]
    [True, True, True, False, False, False]
    """
    word = name.strip("_")
    word = word.lower() if word.isupper() else word
    if word in FIELD_WORDS | NO_PARTICIPLES:
        return False
    return word in PARTICIPLES | POINTERS or re.fullmatch("[a-z]*ed", word) is not None


def unclear_names() -> set[tuple[str, str]]:
    names = set()
    for path in (*SOURCES.rglob("*.py"), *APPLICATIONS.rglob("*.py")):
        place = path.relative_to(SOURCES if path.is_relative_to(SOURCES) else SOURCES.parent).as_posix()
        found = {path.stem, *names_in(ast.parse(path.read_text(), str(path)))}
        names |= {(place, name) for name in found if says_nothing(name)}
    return names


def test_a_name_says_what_it_holds() -> None:
    unclear = unclear_names() - EXCEPTIONS
    assert not unclear, f"say what they hold, in words of the field: {sorted(unclear)}"


def test_exceptions_are_still_needed() -> None:
    assert unclear_names() >= EXCEPTIONS
