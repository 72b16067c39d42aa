"""THE table: every legal change of a job's state, and nothing else decides one.

From this table come the guarded UPDATE (:mod:`penstock.store.queries.change_state`), the check of who may make
it, the actions an answer offers, the property tests and the table in the docs. A new way between two states is one line
here; a new state is one more in :class:`penstock.lifecycle.states.JobState`, from which the CHECK constraint comes.

``stamps`` are the timestamp columns a transition sets to now; ``clears`` are the columns it empties.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.lifecycle.states import Actor, JobState

S = JobState
ANYONE = frozenset({Actor.OWNER, Actor.ADMIN, Actor.SYSTEM})
ENGINE = frozenset({Actor.WORKER, Actor.SYSTEM})


@dataclass(frozen=True, slots=True)
class Transition:
    """One named way from some states to another."""

    name: str
    sources: frozenset[JobState]
    target: JobState
    who: frozenset[Actor]
    meaning: str
    stamps: tuple[str, ...] = ()
    clears: tuple[str, ...] = ()
    opens_run: bool = False
    keeps_progress: bool = False
    """Does the history row say how far the job was?"""


def _row(
    name: str,
    sources: set[JobState],
    target: JobState,
    who: frozenset[Actor],
    meaning: str,
    *,
    stamps: tuple[str, ...] = (),
    clears: tuple[str, ...] = (),
    opens_run: bool = False,
    keeps_progress: bool = False,
) -> Transition:
    return Transition(name, frozenset(sources), target, who, meaning, stamps, clears, opens_run, keeps_progress)


_FAILURE = (
    "last_error", "error_code", "error_type", "error_class", "failed_phase", "killed_by", "killed_reason",
)  # fmt: skip

SUBMIT = _row("submit", {S.CREATED}, S.QUEUED, ANYONE, "everything is recorded; work may begin", stamps=("queued_at",))
START = _row(
    "start", {S.QUEUED}, S.RUNNING, ENGINE, "the first item of this run is claimed",
    stamps=("started_at", "recent_at"),
)  # fmt: skip
SUCCEED = _row(
    "succeed", {S.RUNNING}, S.SUCCEEDED, ENGINE, "all work is done and finalized",
    stamps=("completed_at",), clears=("next_claim_at", *_FAILURE),
)  # fmt: skip
FAIL = _row(
    "fail", {S.CREATED, S.QUEUED, S.RUNNING}, S.FAILED, ENGINE, "it could not finish",
    stamps=("completed_at",), clears=("next_claim_at",), keeps_progress=True,
)  # fmt: skip
RETRY = _row("retry", {S.RUNNING}, S.RETRYING, ENGINE, "a single-step job failed and waits out its backoff")
RESCUE = _row(
    "rescue",
    {S.RUNNING},
    S.RUNNING,
    frozenset({Actor.SYSTEM}),
    "a worker died while it held items; they go back to the queue",
    stamps=("recent_at",),
)
REQUEUE = _row("requeue", {S.RETRYING}, S.QUEUED, ENGINE, "the backoff has passed", stamps=("queued_at",))
PAUSE = _row(
    "pause", {S.QUEUED, S.RUNNING, S.RETRYING}, S.PAUSED, ANYONE, "no new item starts; claimed ones finish",
    clears=("next_claim_at",),
)  # fmt: skip
RESUME = _row("resume", {S.PAUSED}, S.QUEUED, ANYONE, "its items are claimed again", stamps=("queued_at",))
CANCEL = _row(
    "cancel", {S.CREATED, S.QUEUED, S.RUNNING, S.RETRYING, S.PAUSED}, S.CANCELED, ANYONE, "stopped on purpose",
    stamps=("canceled_at",), clears=("next_claim_at",), keeps_progress=True,
)  # fmt: skip
COMMIT = _row("commit", {S.SUCCEEDED}, S.COMMITTED, ANYONE, "the owner used the result", stamps=("committed_at",))
ABANDON = _row(
    "abandon", {S.SUCCEEDED}, S.ABANDONED, ANYONE, "the result was not wanted, or not used in time",
    stamps=("abandoned_at",),
)  # fmt: skip
REPROCESS = _row(
    "reprocess", {S.SUCCEEDED, S.FAILED}, S.QUEUED, ANYONE, "some items run again in a new run",
    stamps=("queued_at",), clears=("completed_at", "result", *_FAILURE), opens_run=True,
)  # fmt: skip

TRANSITIONS: tuple[Transition, ...] = (
    SUBMIT, START, SUCCEED, FAIL, RETRY, RESCUE, REQUEUE, PAUSE, RESUME, CANCEL, COMMIT, ABANDON, REPROCESS,
)  # fmt: skip

ENTRY = frozenset({S.CREATED, S.QUEUED})
"""How a record may begin: created, or queued when it is created and submitted in one transaction."""


def transitions_from(source: JobState) -> tuple[Transition, ...]:
    """What may happen to a job in ``source``, in the table's order."""
    return tuple(transition for transition in TRANSITIONS if source in transition.sources)


def is_legal(source: JobState | None, target: JobState) -> bool:
    """Is there a way from ``source`` (None: not recorded yet) to ``target``?"""
    if source is None:
        return target in ENTRY
    return any(transition.target is target for transition in transitions_from(source))


def actions(source: JobState, who: Actor, *, reprocessable: bool, pausable: bool = True) -> tuple[str, ...]:
    """The names of what ``who`` may do now: what an API answer offers and a page shows as buttons."""
    return tuple(
        transition.name
        for transition in transitions_from(source)
        if who in transition.who
        and (reprocessable or not transition.opens_run)
        and (pausable or transition is not PAUSE)
    )
