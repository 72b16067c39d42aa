"""Bringing jobs over from another system: those that are over keep their ids, their times and what came of them.

A job whose id is here already is left as it is, so a run that was interrupted can be made again. Jobs that are not over
are submitted anew, under their old ids, by :func:`penstock.operations.submit.submit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.lifecycle import bounds
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON, encode, storable_text
from penstock.lifecycle.states import ErrorType, JobState, KilledBy, Phase
from penstock.store.engine import Transaction
from penstock.store.statements import import_jobs as statements

S = JobState
_WAYS = {
    S.SUCCEEDED: (S.QUEUED, S.RUNNING, S.SUCCEEDED),
    S.FAILED: (S.QUEUED, S.RUNNING, S.FAILED),
    S.CANCELED: (S.QUEUED, S.CANCELED),
    S.COMMITTED: (S.QUEUED, S.RUNNING, S.SUCCEEDED, S.COMMITTED),
    S.ABANDONED: (S.QUEUED, S.RUNNING, S.SUCCEEDED, S.ABANDONED),
}
"""How a job came to where it is."""
_REASON = "brought over from another system"


@dataclass(frozen=True, slots=True)
class PastJob:
    """A job that is over, as another system kept it."""

    id: UUID
    state: JobState
    owner: str | None
    params: JSON
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    decided_at: datetime | None = None
    """When it was committed, abandoned or canceled."""
    result: JSON = None
    error: str | None = None
    error_code: str | None = None
    unique_key: str | None = None

    def __post_init__(self) -> None:
        if self.state not in _WAYS:
            raise InvalidInput(f"job {self.id} is {self.state.value}: only what is over is adopted", field="state")
        for bound in (bounds.OWNER, bounds.UNIQUE_KEY):
            if (value := getattr(self, bound.field)) is not None:
                bound.require(value)

    def moments(self) -> dict[JobState, datetime]:
        """When it came to each state; what is not known is as late as what was before it, and time goes forward."""
        known = {S.QUEUED: self.created_at, S.RUNNING: self.started_at}
        known |= dict.fromkeys((S.SUCCEEDED, S.FAILED), self.completed_at)
        known |= dict.fromkeys((S.COMMITTED, S.ABANDONED, S.CANCELED), self.decided_at)
        found: dict[JobState, datetime] = {}
        last = self.created_at
        for state in _WAYS[self.state]:
            last = max(known[state] or last, last)
            found[state] = last
        return found


def import_job(transaction: Transaction, kind: Kind, past: PastJob, *, most: int) -> bool:
    """Record one job; False when it is here already."""
    moments = past.moments()
    way = _WAYS[past.state]
    failed = past.state is S.FAILED
    parameters = {
        "the_id": past.id,
        "the_kind": kind.name,
        "the_user_id": past.owner,
        "the_state": past.state.value,
        "the_previous_state": way[-2].value,
        "the_unique_key": past.unique_key,
        "the_params": encode(past.params, most=most, at="params"),
        "the_result": encode(past.result, most=most, at="result"),
        "the_last_error": storable_text(past.error or "it failed there, and nobody wrote down why") if failed else None,
        "the_error_code": storable_text(past.error_code or "UNEXPECTED_ERROR")[: bounds.LONGEST_CODE]
        if failed
        else None,
        "the_error_type": ErrorType.TERMINAL.value if failed else None,
        "the_failed_phase": Phase.PROCESSING.value if failed else None,
        "the_killed_by": KilledBy.USER.value if past.state is S.CANCELED else None,
        "the_killed_reason": None,
        "the_event_sequence": len(way),
        "the_created_at": past.created_at,
        "the_queued_at": moments[S.QUEUED],
        "the_started_at": moments.get(S.RUNNING),
        "the_completed_at": moments.get(S.SUCCEEDED) or moments.get(S.FAILED),
        "the_committed_at": moments.get(S.COMMITTED),
        "the_abandoned_at": moments.get(S.ABANDONED),
        "the_canceled_at": moments.get(S.CANCELED),
        "the_updated_at": moments[past.state],
    }
    if transaction.run(statements.import_job_row(transaction.dialect), parameters).one_or_none() is None:
        return False
    for line in _history(past, moments):
        transaction.run(statements.import_event_row(transaction.dialect), line)
    return True


def _history(past: PastJob, moments: dict[JobState, datetime]) -> Iterator[dict[str, object]]:
    before: JobState | None = None
    for sequence, state in enumerate(_WAYS[past.state], 1):
        yield {
            "the_job_id": past.id,
            "the_sequence": sequence,
            "the_from_state": None if before is None else before.value,
            "the_to_state": state.value,
            "the_actor": SYSTEM.actor.value,
            "the_reason": _REASON,
            "the_at": moments[state],
        }
        before = state
