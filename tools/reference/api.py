"""The page of ``penstock``'s public names, from the source."""

from __future__ import annotations

from dataclasses import replace

import penstock
from tools.reference import meanings
from tools.reference.markdown import code, codes, document, fenced, first_sentence, inline, matched, prose, table
from tools.reference.source import Named, find, public_names

# Every public name has its place here. The first of a subject with members is shown in full.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "The application": ("Penstock",),
    "Kinds and their rules": ("Kind", "Policy", "RunsIn", "Backoff", "seconds", "size_in_bytes"),
    "Payloads": ("storable_text", "storable_texts"),
    "What a handler is given": ("ItemContext", "JobContext"),
    "What a handler raises": (
        "HandlerError", "Retryable", "Postponed", "Permanent", "NotFound", "Skip",
        "Killed", "TimeLimitExceeded", "MemoryLimitExceeded", "WorkerCrashed", "Stopped",
    ),
    "Working": ("Worker", "Failure"),
    "Serving": ("create_app", "Identity", "SignedIn", "Submitting", "Anyone", "Admin", "Json", "documented",
        "read_cursor", "written_cursor", "StartForm", "FormField",
    ),
    "Jobs, items and history": (
        "Job", "Progress", "Item", "HistoryEntry", "Submission", "SubmitOutcome", "JobCursor", "StoredFile",
        "Message", "MaintenanceReport",
        "PastJob", "own_metadata", "parse_job_id",
    ),
    "Pages of items": ("ItemRow", "Summary", "ItemCursor", "TimeRange", "ErrorGroup", "LaneSample"),
    "Files that come in": (
        "Planned", "detect_type", "Found", "look_at_table", "open_table", "table_limits", "Table", "TableShape", "Row",
        "TableLimits", "ArchiveLimits", "look_at_archive", "pictures", "source_of", "Source", "Waiting",
        "ProviderDelay",
    ),
    "Lifecycle": (
        "JobState", "ItemStatus", "ItemRole", "Phase", "KilledBy", "ErrorType", "Transition", "TRANSITIONS", "actions",
        "Vocabulary", "VOCABULARIES", "EFFECTIVE_STATUSES", "effective_status",
    ),
    "Who asks": ("Caller", "Actor", "SYSTEM", "owner", "admin"),
    "Settings and time": ("Settings", "load_settings", "Clock", "DatabaseClock", "ManualClock"),
    "Errors of calls": (
        "PenstockError", "InvalidInput", "PayloadNotStorable", "PayloadTooLarge", "KindUnknown", "JobNotFound",
        "FileNotFound", "TransitionRefused", "NotSignedIn", "NotAllowed", "TooManyRequests", "StoreUnavailable",
        "StoreRefused", "SwitchedOff", "ConfigurationError", "SchemaOutOfDate",
    ),
}  # fmt: skip

_ELSEWHERE = {"Settings": "Its fields are the [settings](settings.md)."}


def page() -> str:
    """docs/reference/api.md."""
    placed = {name: subject for subject, names in SUBJECTS.items() for name in names}
    matched("the public names", placed, penstock.__all__)
    homes = public_names()
    return document(
        "Python API",
        "Everything here is imported from `penstock`. A module below it may change without notice; these names do not, "
        "without a line in the changelog.",
        table(
            ("subject", "names"),
            ((f"[{subject}](#{_anchor(subject)})", codes(names)) for subject, names in SUBJECTS.items()),
        ),
        *(_subject(subject, names, homes) for subject, names in SUBJECTS.items()),
    )


def _anchor(heading: str) -> str:
    return "".join(one for one in heading.lower().replace(" ", "-") if one.isalnum() or one == "-")


def _subject(subject: str, names: tuple[str, ...], homes: dict[str, str]) -> str:
    return "\n\n".join([f"## {subject}", *(_name(find(homes[name], name), homes[name]) for name in names)])


# A class that is written in halves: what somebody uses is the whole.
_HALVES = {"Penstock": (("penstock.changing", "Changing"), ("penstock.looking", "Looking"))}


def _name(one: Named, home: str) -> str:
    one = _whole(one)
    parts = [f"### {one.name}"]
    if one.kind == "class":
        parts += [_heading(one), prose(one.doc), *_members(one)]
    elif one.kind == "function":
        parts += [fenced(one.called(one.name), "python"), prose(one.doc)]
    else:
        parts += [fenced(one.name + (f": {one.signature}" if one.signature else ""), "python"), prose(one.doc)]
    if one.name in _ELSEWHERE:
        parts.append(_ELSEWHERE[one.name])
    parts.append(f"At home in `{home}`.")
    return "\n\n".join(part for part in parts if part)


def _whole(one: Named) -> Named:
    """The class with the members of its other halves."""
    members = list(one.members)
    for module, name in _HALVES.get(one.name, ()):
        own = {each.name for each in members}
        members += [each for each in find(module, name).members if each.name not in own]
    return replace(one, members=tuple(members))


def _heading(one: Named) -> str:
    made = [member for member in one.members if member.name == "__init__"]
    if made:
        return fenced(made[0].called(one.name, answers=False), "python")
    bases = [base for base in one.bases if base not in ("NamedTuple", "Protocol", "BaseSettings")]
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
            if (one.name, method.name) == ("Penstock", "kind"):
                parts.append(_options(method))
    return parts


def _options(method: Named) -> str:
    """The rules a kind may have; the defaults are in the signature above."""
    given = [one.partition(":")[0] for one in method.arguments[1:] if one != "*"]
    matched("the options of a kind", meanings.KIND_OPTIONS, given)
    return table(("option", "meaning"), ((code(name), meaning) for name, meaning in meanings.KIND_OPTIONS.items()))
