"""The engine's table of states as the pages get it: words, icons, colours, phases and actions.

It is written into each page once, so no module of a page repeats the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import orjson

from penstock.lifecycle.states import ACTIVE, KILLED_LOOK, ItemStatus, JobState, Look
from penstock.lifecycle.transitions import TRANSITIONS
from penstock.lifecycle.vocabularies import TASKS


@dataclass(frozen=True, slots=True)
class StateShown:
    """How a state looks, the status and the known state it is shown as, and whether the job is over in it."""

    look: Look
    status: str
    shown_as: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class LifecycleTable:
    """All of it, by the words of the API."""

    states: dict[str, StateShown]
    statuses: dict[str, Look]
    items: dict[str, Look]
    actions: dict[str, str]
    """What may be asked of a job, and the word on its button."""


@cache
def lifecycle_table() -> LifecycleTable:
    """The table of this installation."""
    return LifecycleTable(
        states={
            state.value: StateShown(state.look, TASKS.word(state), state.shown_as.value, is_over=state not in ACTIVE)
            for state in JobState
        },
        statuses={status: _look_of_status(status) for status in TASKS.statuses},
        items={status.value: status.look for status in ItemStatus},
        actions={transition.name: transition.name.capitalize() for transition in TRANSITIONS},
    )


@cache
def lifecycle_script() -> str:
    """The table as the text of a script element, safe as it is: what would end the element is written otherwise."""
    return orjson.dumps(lifecycle_table()).decode().replace("<", "\\u003c")


def _look_of_status(status: str) -> Look:
    """That of the state of the same name, or of the first state that is shown so."""
    if status == TASKS.killed:
        return KILLED_LOOK
    states = [state for state in JobState if TASKS.word(state) == status]
    return next((state for state in states if state.value == status), states[0]).look
