"""The page of states, transitions and vocabularies, from :mod:`penstock.lifecycle`."""

from __future__ import annotations

from penstock.lifecycle.states import (
    ACTIVE,
    ENDED_STATUSES,
    Actor,
    ErrorType,
    ItemRole,
    ItemStatus,
    JobState,
    KilledBy,
    Phase,
)
from penstock.lifecycle.transitions import ENTRY, TRANSITIONS, Transition, transitions_from
from penstock.lifecycle.vocabularies import VOCABULARIES as OURS
from penstock_apps.documents.vocabulary import DOCUMENTS
from penstock_apps.recipes.vocabularies import PARSE_REQUESTS, RECIPES
from tools.reference import meanings
from tools.reference.markdown import code, codes, document, fenced, matched, table

VOCABULARIES = {**OURS, **{words.name: words for words in (RECIPES, PARSE_REQUESTS, DOCUMENTS)}}
"""The engine's, and those that applications bring."""


def page() -> str:
    """docs/reference/lifecycle.md."""
    return document(
        "Lifecycle",
        "One table decides what may become of a job. It is `TRANSITIONS` in "
        "`src/penstock/lifecycle/transitions.py`, and "
        "this page is made from it. Why it is so: [decision 0002](../decisions/0002-one-lifecycle-as-a-table.md).",
        "## States of a job",
        _states(),
        "A job begins as "
        + " or ".join(code(state) for state in _ordered(ENTRY))
        + ": `queued` when it is recorded and "
        "submitted in one transaction.",
        "## Transitions",
        _transitions(),
        "- **Guarded.** Each is one `UPDATE` whose condition names the sources. It happens whole, with its "
        "timestamps and its line in the history, or not at all, and the caller is told.\n"
        "- **Who.** The actors to whom `actions()` offers the transition: it is what an answer or a page shows "
        "as buttons. "
        "The operations themselves check that the caller may see the job, and not this column. `SYSTEM` is the caller "
        "when a program names none; it is trusted.\n"
        "- **Stamps** are set to the database's time. **Clears** are emptied.\n"
        "- `reprocess` also opens a new run (`run` + 1), and only for kinds with `reprocess=True`. No other transition "
        "leads out of a state in which the work is over, but for `commit` and `abandon`.",
        "## Diagram",
        fenced(_diagram(), "mermaid"),
        "## From state to state",
        _matrix(),
        "## Items",
        _item_statuses(),
        "An item goes `PENDING` → `PROCESSING` when a worker claims it, and from there to one of the four ends. "
        "It goes "
        "back to `PENDING` when it is to be tried again (its `ready_at` says from when), when its worker hands it back "
        "unfinished, and when its lease runs out. A reprocess takes items from an end back to `PENDING`.",
        "`PROCESSING` and a lease go together: a constraint in the database keeps it so.",
        "### Roles",
        _words("role", ItemRole, meanings.ROLES),
        "## Other words",
        "### Phases",
        _words("phase", Phase, meanings.PHASES),
        "### Who ended it early (`killed_by`)",
        _words("killed_by", KilledBy, meanings.KILLED_BY),
        "### Kinds of error (`error_type`)",
        _words("error_type", ErrorType, meanings.ERROR_TYPES),
        "### Actors",
        _words("actor", Actor, meanings.ACTORS),
        "## Vocabularies",
        "The words in which each family of interfaces shows the one lifecycle. Each is total over the states, "
        "and nothing else decides a public status.",
        _vocabularies(),
        _killed(),
    )


def _ordered(states: frozenset[JobState]) -> list[JobState]:
    return [state for state in JobState if state in states]


def _states() -> str:
    return table(
        ("state", "meaning", "work to come", "leads to"),
        (
            (
                code(state),
                state.meaning,
                "yes" if state in ACTIVE else "no",
                codes(_ordered(frozenset(one.target for one in transitions_from(state)))) or "nothing",
            )
            for state in JobState
        ),
    )


def _transitions() -> str:
    return table(
        ("name", "from", "to", "who", "meaning", "stamps", "clears"),
        (
            (
                f"**{one.name}**",
                codes(_ordered(one.sources)),
                code(one.target),
                ", ".join(actor for actor in Actor if actor in one.who),
                one.meaning + ("; opens a new run" if one.opens_run else ""),
                codes(one.stamps),
                codes(one.clears),
            )
            for one in TRANSITIONS
        ),
    )


def _diagram() -> str:
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {state}" for state in _ordered(ENTRY)]
    lines += [f"    {source} --> {one.target}: {one.name}" for one in TRANSITIONS for source in _ordered(one.sources)]
    lines += [f"    {state} --> [*]" for state in JobState if not transitions_from(state)]
    return "\n".join(lines)


def _matrix() -> str:
    def named(source: JobState, target: JobState) -> str:
        dialect: list[Transition] = [one for one in transitions_from(source) if one.target is target]
        return ", ".join(one.name for one in dialect)

    return table(
        ("from \\ to", *(state.value for state in JobState)),
        ((f"**{source}**", *(named(source, target) for target in JobState)) for source in JobState),
    )


def _item_statuses() -> str:
    return table(
        ("status", "meaning", "counts as processed"),
        ((code(status), status.meaning, "yes" if status in ENDED_STATUSES else "no") for status in ItemStatus),
    )


def _words(what: str, values: type[ItemRole | Phase | KilledBy | ErrorType | Actor], words: dict[str, str]) -> str:
    matched(what, words, list(values))
    return table((what, "meaning"), ((code(value), words[value]) for value in values))


def _vocabularies() -> str:
    return table(
        ("state", *(code(name) for name in VOCABULARIES)),
        ((code(state), *(one.word(state) for one in VOCABULARIES.values())) for state in JobState),
    )


def _killed() -> str:
    return "\n".join(
        f"In `{name}`, a failed job with `killed_by` set is `{one.killed}`."
        for name, one in VOCABULARIES.items()
        if one.killed is not None
    )
