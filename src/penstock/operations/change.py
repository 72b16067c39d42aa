"""Changing states: the guarded update and its history row, together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.states import Actor, JobState
from penstock.lifecycle.transitions import Transition
from penstock.store.statements.change_state import EVENTS, EXPLAINED_EVENTS, insert_events
from penstock.store.transaction import Transaction

_MANY_OF_THESE = (Actor.WORKER, Actor.SYSTEM)
_WORTH_TELLING = (JobState.CANCELED, JobState.ABANDONED)
"""A worker starts and ends thousands of jobs a second; of those only what went wrong is told by itself."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A job a transition happened to."""

    id: UUID
    kind: str
    has_followers: bool


def change(
    transaction: Transaction,
    transition: Transition,
    statement: Any,
    parameters: dict[str, Any],
    caller: Caller,
    *,
    reason: str | None = None,
    reasons: Mapping[UUID, str | None] | None = None,
) -> Sequence[Changed]:
    """Run a guarded change and write the history of the jobs it happened to; the answer names those jobs."""
    if caller.actor not in transition.who:
        raise TransitionRefused(f"{caller.actor.value} may not {transition.name} a job", code="NOT_ALLOWED")
    rows = transaction.run(statement, parameters).all()
    if not rows:
        return ()
    made = {
        "the_to_state": transition.target.value,
        "the_actor": caller.actor.value,
        "the_actor_id": caller.id,
    }
    explained = reason is not None or reasons is not None or transition.keeps_progress
    fields = EXPLAINED_EVENTS if explained else EVENTS
    events: list[tuple[object, ...]]
    if explained:
        why = reasons or {}
        told = _progress if transition.keeps_progress else _nothing
        events = [(row[0], row[4], row[3], row[2], why.get(row[0], reason), told(row)) for row in rows]
    else:
        events = [(row[0], row[4], row[3], row[2]) for row in rows]
    parameters = transaction.dialect.parameters("events", fields, events)
    transaction.run(insert_events(transaction.dialect, explained=explained), parameters | made)
    transaction.log(
        f"{transition.name}: {transition.target.value}",
        level=_level(caller, transition),
        jobs=len(rows),
        first=str(rows[0][0]),
        kind=rows[0][1],
        by=caller.id or caller.actor.value,
        reason=reason if reasons is None else reasons.get(rows[0][0]),
    )
    return [Changed(row[0], row[1], row[5]) for row in rows]


def _level(caller: Caller, transition: Transition) -> str:
    if transition.target is JobState.FAILED:
        return "error"
    return "info" if caller.actor not in _MANY_OF_THESE or transition.target in _WORTH_TELLING else "debug"


def _progress(row: Any) -> str:
    """How far the job was when it happened, as JSON."""
    return f'{{"processed":{row.processed_items},"total":{row.total_items}}}'


def _nothing(_: Any) -> None:
    """Most transitions have nothing more to tell."""
