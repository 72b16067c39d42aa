"""The one guarded UPDATE through which every change of a job's state goes, and the history it writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Insert,
    Integer,
    String,
    Text,
    Update,
    bindparam,
    case,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    update,
)

from penstock.lifecycle.callers import Caller
from penstock.lifecycle.states import JobState
from penstock.lifecycle.times import TIME_OF
from penstock.lifecycle.transitions import Transition
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.handed_rows import HandedRows
from penstock.store.tables import job_events, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


class ChangedJob(NamedTuple):
    """A job that a transition happened to, and what its history needs: every change answers with these."""

    id: UUID
    kind: str
    previous_state: str
    run: int
    event_sequence: int
    has_followers: bool
    processed_items: int
    total_items: int


_CHANGED_COLUMNS = tuple(jobs.c[name] for name in ChangedJob._fields)


def change_state(
    dialect: Dialect, transition: Transition, which: ColumnElement[bool], values: Mapping[str, Any] | None = None
) -> Update:
    """Make ``transition`` for the jobs ``which`` names that are in one of its sources, and for no others.

    The rows it returns are the jobs it happened to; a job that is not among them was in another state.
    """
    now = dialect.now()
    changes: dict[str, Any] = dict.fromkeys(transition.clears, null())
    changes |= dict.fromkeys(transition.stamps, now)
    changes |= _times(dialect, transition)
    changes |= values or {}
    if transition.opens_run:
        changes["run"] = jobs.c.run + 1
    return (
        update(jobs)
        .where(which, dialect.check(or_(*(jobs.c.state == source.value for source in sorted(transition.sources)))))
        .values(
            previous_state=jobs.c.state,
            state=transition.target.value,
            event_sequence=jobs.c.event_sequence + 1,
            state_since=now,
            updated_at=now,
            **changes,
        )
        .returning(*_CHANGED_COLUMNS)
    )


def _times(dialect: Dialect, transition: Transition) -> dict[str, ColumnElement[Any]]:
    """The seconds since the change before, added to the time that passes in the state which ends now."""
    # A job that has not changed yet has no moment of its last change.
    since = func.coalesce(jobs.c.state_since, jobs.c.created_at)
    seconds = dialect.seconds_between(since, dialect.now())
    states_by_time: defaultdict[str, list[str]] = defaultdict(list)
    for state in sorted(transition.sources & TIME_OF.keys()):
        states_by_time[TIME_OF[state]].append(state.value)
    times: dict[str, ColumnElement[Any]] = {}
    for name, states in states_by_time.items():
        is_all = len(states) == len(transition.sources)
        stretch = seconds if is_all else case((jobs.c.state.in_(states), seconds), else_=0.0)
        times[f"{name}_seconds"] = jobs.c[f"{name}_seconds"] + stretch
    return times


class Event(NamedTuple):
    """What differs between the history rows of jobs that changed together."""

    job_id: UUID
    sequence: int
    run: int
    from_state: str


class ExplainedEvent(NamedTuple):
    """The same with a reason, and with what the history keeps beside it, as JSON text."""

    job_id: UUID
    sequence: int
    run: int
    from_state: str
    reason: str | None
    data: str | None


_EVENT_TYPES: dict[str, Any] = {"job_id": Identifier(), "sequence": Integer(), "run": Integer(), "from_state": String()}
_EVENTS = HandedRows("events", Event, **_EVENT_TYPES)
_EXPLAINED_EVENTS = HandedRows("events", ExplainedEvent, **_EVENT_TYPES, reason=Text(), data=Text())
_MADE_BY = ("to_state", "actor", "actor_id", "at")


def insert_events(transaction: Transaction, events: Sequence[Event], *, to_state: JobState, caller: Caller) -> None:
    """One history row for each change; where it went and who made it is the same for all of them."""
    rows = _EVENTS.parameters(transaction.dialect, events)
    transaction.execute(_insert_events(transaction.dialect), rows | _new_state_parameters(to_state, caller))


@built_once
def _insert_events(dialect: Dialect) -> Insert:
    rows = _EVENTS.table(dialect)
    columns = [*Event._fields, *_MADE_BY]
    return insert(job_events).from_select(columns, select(*rows.c, *_made_by(dialect, _new_state())))


def insert_explained_events(
    transaction: Transaction, events: Sequence[ExplainedEvent], *, to_state: JobState, caller: Caller
) -> None:
    """The same for changes that have a reason or keep something."""
    rows = _EXPLAINED_EVENTS.parameters(transaction.dialect, events)
    transaction.execute(_insert_explained_events(transaction.dialect), rows | _new_state_parameters(to_state, caller))


@built_once
def _insert_explained_events(dialect: Dialect) -> Insert:
    rows = _EXPLAINED_EVENTS.table(dialect)
    *cells, data = rows.c
    columns = [*ExplainedEvent._fields, *_MADE_BY]
    return insert(job_events).from_select(columns, select(*cells, dialect.json(data), *_made_by(dialect, _new_state())))


def _new_state_parameters(to_state: JobState, caller: Caller) -> dict[str, Any]:
    return {"new_state": to_state.value, **made_by(caller)}


def made_by(caller: Caller) -> dict[str, Any]:
    """The parameters of a statement that writes history: who made the change."""
    return {"by_actor": caller.actor.value, "by_id": caller.id}


def _made_by(dialect: Dialect, to_state: ColumnElement[str]) -> tuple[ColumnElement[Any], ...]:
    """The last columns of a history row."""
    return to_state, bindparam("by_actor", type_=String), bindparam("by_id", type_=String), dialect.writing_time()


def _new_state() -> ColumnElement[str]:
    return bindparam("new_state", type_=String)


def tell_of(dialect: Dialect, change: Update, transition: Transition) -> Insert:
    """The change and one history row for each job it happens to, in one statement; who makes it: :func:`made_by`."""
    changed_jobs = change.cte("changed")
    columns = ["job_id", "sequence", "run", "from_state", *_MADE_BY]
    source = select(
        changed_jobs.c.id,
        changed_jobs.c.event_sequence,
        changed_jobs.c.run,
        changed_jobs.c.previous_state,
        *_made_by(dialect, literal(transition.target.value)),
    )
    return insert(job_events).from_select(columns, source)
