"""The page of the public names, from the source."""

from __future__ import annotations

import importlib
from dataclasses import replace

import penstock
from tools.reference.markdown import code, codes, document, fenced, first_sentence, inline, matched, prose, table
from tools.reference.source import Named, find, public_names

# Every public module, and what it is for; those of the root come by subject.
MODULES = {
    "penstock.app": "What the objects of an app are, what they give and what they take.",
    "penstock.errors": "Every error. Those that handlers raise are at the root too.",
    "penstock.lifecycle": "States, transitions, vocabularies and payloads.",
    "penstock.worker": "What applications need of workers.",
    "penstock.application": "What an application brings, as one value.",
    "penstock.samples": "Sample jobs of an application, for a first look.",
    "penstock.server": "The server.",
    "penstock.http": "Routes of one's own beside ours.",
    "penstock.ingest": "Files that come in: what they are, their rows, where they wait.",
    "penstock.exports": "Files that go out.",
    "penstock.store": "Tables of an application's own beside ours.",
    "penstock.messages": "Where messages of the outbox go, and how others come in.",
    "penstock.settings": "Settings as one value; also at the root.",
    "penstock.private_files": "Files and folders that other accounts cannot open.",
    "penstock.clock": "Time: the database's, or one that a test holds.",
    "penstock.testing": "For your tests.",
}
SUBJECTS: dict[str, tuple[str, ...]] = {
    "The application": ("Penstock", "Worker", "Settings", "load_settings"),
    "Who asks": ("Caller", "SYSTEM", "owner", "admin"),
    "Kinds and their rules": ("Kind", "Policy", "RunsIn", "Backoff"),
    "What a handler is given": ("ItemContext", "JobContext", "Planned"),
    "What a handler raises": ("PenstockError", "Retryable", "Permanent", "NotFound", "Skip"),
    "Jobs and items": ("Job", "JobState", "Submission", "Item", "ItemStatus"),
}

_OPTIONS = {
    ("Penstock", "kind"): ("penstock.lifecycle.policy", "PolicyOptions"),
    ("Penstock", "submit"): ("penstock.operations.request", "SubmitOptions"),
}
_SHOWN_WHOLE = {
    "Penstock": ("penstock.app.bound", "BoundApp"),
    "BoundApp": ("penstock.operations.submit", "Submitter"),
}
_ELSEWHERE = {"Settings": "Its fields are the [settings](settings.md)."}


def page() -> str:
    """docs/reference/api.md."""
    at_root = [name for names in SUBJECTS.values() for name in names]
    matched("the public names", dict.fromkeys(at_root), penstock.__all__)
    homes = public_names("penstock")
    others = {module: _names_of(module, at_root) for module in MODULES}
    return document(
        "Python API",
        "What is not here may change without notice; these names do not, without a line in the changelog.",
        table(
            ("imported from", "names"),
            [
                *((f"[`penstock`](#{_anchor(subject)})", codes(names)) for subject, names in SUBJECTS.items()),
                *((f"[`{module}`](#{_anchor(module)})", codes(names)) for module, names in others.items() if names),
            ],
        ),
        *(_section(subject, "", names, homes) for subject, names in SUBJECTS.items()),
        *(_section(module, MODULES[module], names, public_names(module)) for module, names in others.items() if names),
    )


def _names_of(module: str, at_root: list[str]) -> tuple[str, ...]:
    """The names of a module that the root does not have."""
    return tuple(name for name in importlib.import_module(module).__all__ if name not in at_root)


def _anchor(heading: str) -> str:
    return "".join(one for one in heading.lower().replace(" ", "-") if one.isalnum() or one in "-_")


def _section(heading: str, words: str, names: tuple[str, ...], homes: dict[str, str]) -> str:
    parts = [f"## {heading}", *([words] if words else [])]
    return "\n\n".join([*parts, *(_name(_with_inherited(find(homes[name], name))) for name in names)])


def _with_inherited(one: Named) -> Named:
    """A class that people use whole, with the members it has from its base."""
    if one.name not in _SHOWN_WHOLE:
        return one
    own = {member.name for member in one.members}
    base = _with_inherited(find(*_SHOWN_WHOLE[one.name]))
    inherited = (member for member in base.members if member.name not in own)
    return replace(one, members=(*inherited, *one.members))


def _name(one: Named) -> str:
    parts = [f"### {one.name}"]
    if one.kind == "class":
        parts += [_heading(one), prose(one.doc), *_members(one)]
    elif one.kind == "function":
        parts += [fenced(one.called(one.name), "python"), prose(one.doc)]
    else:
        parts += [fenced(one.name + (f": {one.signature}" if one.signature else ""), "python"), prose(one.doc)]
    if one.name in _ELSEWHERE:
        parts.append(_ELSEWHERE[one.name])
    return "\n\n".join(part for part in parts if part)


def _heading(one: Named) -> str:
    made = [member for member in one.members if member.name == "__init__"]
    if made:
        return fenced(made[0].called(one.name, answers=False), "python")
    bases = [base for base in one.bases if base not in ("NamedTuple", "Protocol", "BaseSettings", "TypedDict")]
    return fenced(f"class {one.name}({', '.join(bases)})" if bases else f"class {one.name}", "python")


def _members(one: Named) -> list[str]:
    parts = []
    fields = [] if one.name in _ELSEWHERE else one.of_kind("field")
    if fields:
        told = any(member.doc for member in fields)
        heads = ("field", "type", "meaning") if told else ("field", "type")
        rows = [(code(member.name), code(member.signature), inline(member.doc))[: len(heads)] for member in fields]
        parts.append(table(heads, rows))
    values = one.of_kind("value")
    if values and one.name not in _ELSEWHERE:
        parts.append(table(("name", "value"), ((code(each.name), code(each.signature)) for each in values)))
    properties = one.of_kind("property")
    if properties:
        rows = [(code(each.name), code(each.signature), first_sentence(each.doc)) for each in properties]
        parts.append(table(("property", "type", "meaning"), rows))
    for method in one.of_kind("method"):
        if method.name != "__init__":
            parts += [
                f"#### {one.name}.{method.name}",
                fenced(method.called(method.name), "python"),
                prose(method.doc),
            ]
            if (one.name, method.name) in _OPTIONS:
                parts.append(_options(*_OPTIONS[one.name, method.name]))
    return parts


def _options(module: str, name: str) -> str:
    """The options that a method takes by their names, from the class that says them."""
    fields = find(module, name).of_kind("field")
    return table(
        ("option", "type", "meaning"), ((code(each.name), code(each.signature), inline(each.doc)) for each in fields)
    )
