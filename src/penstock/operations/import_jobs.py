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
from penstock.store.queries import import_jobs as queries
from penstock.store.transaction import Transaction

S = JobState
_WAYS = {
    S.SUCCEEDED: (S.QUEUED, S.RUNNING, S.SUCCEEDED),
    S.FAILED: (S.QUEUED, S.RUNNING, S.FAILED),
    S.CANCELED: (S.QUEUED, S.CANCELED),
    S.COMMITTED: (S.QUEUED, S.RUNNING, S.SUCCEEDED, S.COMMITTED),
    S.ABANDONED: (S.QUEUED, S.RUNNING, S.SUCCEEDED, S.ABANDONED),
}
"""The states through which a job came to its last one."""
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
            raise InvalidInput(f"job {self.id} is {self.state.value}: only finished jobs are imported", field="state")
        for bound in (bounds.OWNER, bounds.UNIQUE_KEY):
            if (value := getattr(self, bound.field)) is not None:
                bound.require(value)

    def moments(self) -> dict[JobState, datetime]:
        """When it came to each state; what is not known is as late as what was before it, and time goes forward."""
        known_moments = {S.QUEUED: self.created_at, S.RUNNING: self.started_at}
        known_moments |= dict.fromkeys((S.SUCCEEDED, S.FAILED), self.completed_at)
        known_moments |= dict.fromkeys((S.COMMITTED, S.ABANDONED, S.CANCELED), self.decided_at)
        moments: dict[JobState, datetime] = {}
        last = self.created_at
        for state in _WAYS[self.state]:
            last = max(known_moments[state] or last, last)
            moments[state] = last
        return moments


def import_job(transaction: Transaction, kind: Kind, past: PastJob, *, max_bytes: int) -> bool:
    """Record one job; False when it is here already."""
    moments = past.moments()
    way = _WAYS[past.state]
    failed = past.state is S.FAILED
    row = queries.ImportedJob(
        id=past.id,
        kind=kind.name,
        user_id=past.owner,
        state=past.state.value,
        previous_state=way[-2].value,
        unique_key=past.unique_key,
        params=encode(past.params, max_bytes=max_bytes, at="params"),
        result=encode(past.result, max_bytes=max_bytes, at="result"),
        last_error=storable_text(past.error or "it failed there, and nobody wrote down why") if failed else None,
        error_code=storable_text(past.error_code or "PROCESSING_ERROR")[: bounds.LONGEST_CODE] if failed else None,
        error_type=ErrorType.TERMINAL.value if failed else None,
        failed_phase=Phase.PROCESSING.value if failed else None,
        killed_by=KilledBy.USER.value if past.state is S.CANCELED else None,
        event_sequence=len(way),
        created_at=past.created_at,
        queued_at=moments[S.QUEUED],
        started_at=moments.get(S.RUNNING),
        completed_at=moments.get(S.SUCCEEDED) or moments.get(S.FAILED),
        committed_at=moments.get(S.COMMITTED),
        abandoned_at=moments.get(S.ABANDONED),
        canceled_at=moments.get(S.CANCELED),
        updated_at=moments[past.state],
    )
    if not queries.insert_past_job(transaction, row):
        return False
    for event in _history(past, moments):
        queries.insert_past_event(transaction, event)
    return True


def _history(past: PastJob, moments: dict[JobState, datetime]) -> Iterator[queries.ImportedEvent]:
    before: JobState | None = None
    for sequence, state in enumerate(_WAYS[past.state], 1):
        yield queries.ImportedEvent(
            job_id=past.id,
            sequence=sequence,
            from_state=None if before is None else before.value,
            to_state=state.value,
            actor=SYSTEM.actor.value,
            reason=_REASON,
            at=moments[state],
        )
        before = state
