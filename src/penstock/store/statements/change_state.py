"""The one guarded UPDATE through which every change of a job's state goes, and the history it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Insert,
    Integer,
    String,
    Text,
    Update,
    bindparam,
    insert,
    literal,
    null,
    or_,
    select,
    update,
)

from penstock.lifecycle.transitions import Transition
from penstock.store.dialects.contract import Dialect, Field
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_events, jobs
from penstock.store.types import Identifier

CHANGED = (
    jobs.c.id,
    jobs.c.kind,
    jobs.c.previous_state,
    jobs.c.run,
    jobs.c.event_sequence,
    jobs.c.has_followers,
    jobs.c.processed_items,
    jobs.c.total_items,
)
"""What every change answers: the jobs it happened to, and what their history needs."""


def change_state(
    dialect: Dialect, transition: Transition, which: ColumnElement[bool], values: Mapping[str, Any] | None = None
) -> Update:
    """Make ``transition`` for the jobs ``which`` names that are in one of its sources, and for no others.

    The rows it returns are the jobs it happened to; a job that is not among them was in another state.
    """
    now = dialect.now()
    changes: dict[str, Any] = dict.fromkeys(transition.clears, null())
    changes |= dict.fromkeys(transition.stamps, now)
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
            updated_at=now,
            **changes,
        )
        .returning(*CHANGED)
    )


EVENTS = (
    Field("job_id", Identifier()),
    Field("sequence", Integer()),
    Field("run", Integer()),
    Field("from_state", String()),
)
EXPLAINED_EVENTS = (*EVENTS, Field("reason", Text()), Field("data", Text()))


@built_once
def insert_events(dialect: Dialect, *, explained: bool) -> Insert:
    """Write one history row for each change; where it went and who made it is the same for all of them."""
    rows = dialect.rows("events", EXPLAINED_EVENTS if explained else EVENTS)
    columns = ["job_id", "sequence", "run", "from_state", "reason", "data", "to_state", "actor", "actor_id", "at"]
    source = select(
        rows.c.job_id,
        rows.c.sequence,
        rows.c.run,
        rows.c.from_state,
        rows.c.reason if explained else null(),
        dialect.json(rows.c.data) if explained else null(),
        bindparam("the_to_state", type_=String),
        bindparam("the_actor", type_=String),
        bindparam("the_actor_id", type_=String),
        dialect.now(),
    )
    return insert(job_events).from_select(columns, source)


def tell_of(dialect: Dialect, change: Update, transition: Transition) -> Insert:
    """The change and one history row for each job it happens to, in one statement."""
    changed = change.cte("changed")
    columns = ["job_id", "sequence", "run", "from_state", "to_state", "actor", "actor_id", "at"]
    source = select(
        changed.c.id,
        changed.c.event_sequence,
        changed.c.run,
        changed.c.previous_state,
        literal(transition.target.value),
        bindparam("the_actor", type_=String),
        bindparam("the_actor_id", type_=String),
        dialect.now(),
    )
    return insert(job_events).from_select(columns, source)
