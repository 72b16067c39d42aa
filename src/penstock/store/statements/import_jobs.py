"""Recording jobs that another system has worked off, with the history they had there."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Insert, Integer, String, Text, bindparam, insert, literal

from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import job_events, jobs
from penstock.store.types import Identifier, Moment

_GIVEN: dict[str, Any] = {
    "id": Identifier(),
    "kind": String(),
    "user_id": String(),
    "state": String(),
    "previous_state": String(),
    "unique_key": String(),
    "last_error": Text(),
    "error_code": String(),
    "error_type": String(),
    "failed_phase": String(),
    "killed_by": String(),
    "killed_reason": Text(),
    "event_sequence": Integer(),
    "created_at": Moment,
    "queued_at": Moment,
    "started_at": Moment,
    "completed_at": Moment,
    "committed_at": Moment,
    "abandoned_at": Moment,
    "canceled_at": Moment,
    "updated_at": Moment,
}


@built_once
def import_job_row(dialect: Dialect) -> Insert:
    """One job that is over, without items; no row when its id is known already."""
    given = {name: bindparam(f"the_{name}", type_=type_) for name, type_ in _GIVEN.items()}
    payloads = {name: dialect.json(bindparam(f"the_{name}", type_=Text)) for name in ("params", "result")}
    shape = {"single_step": literal(False), "phase": literal("finalizing")}
    return dialect.insert_unless_taken(jobs).values(**given, **payloads, **shape).returning(jobs.c.id)


@built_once
def import_event_row(dialect: Dialect) -> Insert:
    """One line of its history."""
    return insert(job_events).values(
        job_id=bindparam("the_job_id", type_=Identifier),
        sequence=bindparam("the_sequence", type_=Integer),
        from_state=bindparam("the_from_state", type_=String),
        to_state=bindparam("the_to_state", type_=String),
        actor=bindparam("the_actor", type_=String),
        reason=bindparam("the_reason", type_=Text),
        at=bindparam("the_at", type_=Moment),
    )
