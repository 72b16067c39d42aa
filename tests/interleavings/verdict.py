"""Judging an end state: what is wrong with it now, and what never comes to an end when everything is let flow.

The second half is liveness. No more faults happen; leases run out, the sweep passes, workers claim and finish whatever
there is. Then each job has ended, or is paused or held by somebody whose name the history knows; and when these let
theirs go on, everything has ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import Job
from penstock.lifecycle.states import ACTIVE, FLOWING, Actor, JobState
from penstock.operations import control, outbox, read_jobs
from penstock.store.transaction import Transaction
from penstock.testing.drive import LEASE, NEVER_STALE
from penstock.testing.invariants import violations
from tests.interleavings.scenes import BROKEN, LONG, Stage

_ROUNDS = 30
_RELAYS = 3
_TAKEN = 60.0
"""Seconds after which what a relay took and did not send is due again."""
_HELD_BACK = (JobState.PAUSED, JobState.CREATED)
_PEOPLE = (Actor.OWNER, Actor.ADMIN)


def judge(stage: Stage, scene: str, *, followers_may_lag: bool) -> list[str]:
    """Everything that is wrong with the state the store is in; afterwards all has been driven to its end.

    Followers may lag where somebody had one of them locked when its leader went on: then it comes after it, at the
    latest with the sweep.
    """
    broken = scene in BROKEN
    titles = {str(job.id): str(job.title) for job in stage.jobs()}
    found = [] if broken else list(_now(stage, followers_may_lag=followers_may_lag))
    found += _later(stage, stale_seconds=LONG / 2 if broken else NEVER_STALE)
    return [_readable(one, titles) for one in found]


def _readable(fault: str, titles: dict[str, str]) -> str:
    for job_id, title in titles.items():
        fault = fault.replace(job_id, title)
    return fault


def _now(stage: Stage, *, followers_may_lag: bool) -> Iterator[str]:
    for violation in violations(stage.store):
        if not (followers_may_lag and "it follows" in violation):
            yield violation
    jobs = stage.jobs()
    followed = {job.leader_id for job in jobs if job.state in ACTIVE}
    for job in jobs:
        if job.state in FLOWING and job.leader_id is None and job.id not in followed:
            refusal = _pausing(stage, job)
            if refusal is not None:
                yield f"nobody follows {job.id}, but it cannot be paused: {refusal}"
        if job.state in _HELD_BACK and not _has_name(stage, job):
            yield f"{job.id} is {job.state.value}, and nobody knows by whom"


class _Undone(Exception):
    """Takes a transaction back."""


def _pausing(stage: Stage, job: Job) -> str | None:
    """Why a job cannot be paused; it is not."""

    def pause(transaction: Transaction) -> None:
        control.pause(transaction, job.id, SYSTEM)
        raise _Undone

    try:
        stage.store.write(pause)
    except TransitionRefused as refused:
        return str(refused)
    except _Undone:
        pass
    return None


def _has_name(stage: Stage, job: Job) -> bool:
    last = stage.store.read(lambda one: read_jobs.history(one, job.id))[-1]
    return last.actor in _PEOPLE and last.actor_id is not None


def _later(stage: Stage, *, stale_seconds: float) -> Iterator[str]:
    stage.clock.advance(LEASE + 1)
    if stale_seconds < NEVER_STALE:
        stage.clock.advance(stale_seconds)
    for job in _drain(stage, stale_seconds):
        yield f"STUCK: {job.id} is {job.state.value} when nothing moves any more (it follows {job.leader_id})"
    yield from (f"after the drain: {one}" for one in violations(stage.store))
    if any(job.state in ACTIVE for job in stage.jobs()):
        for job in stage.drive_to_end(rounds=_ROUNDS):
            yield f"STUCK: {job.id} is {job.state.value} though everybody let theirs go on"
        yield from (f"at the end: {one}" for one in violations(stage.store))
    for _ in range(_RELAYS):
        if not stage.unsent():
            return
        stage.clock.advance(_TAKEN + 1)
        outbox.relay(stage.store, lambda message: stage.messages.append((message.key, message.payload)))
    if stage.unsent():
        yield "STUCK: a message never goes out"


def _drain(stage: Stage, stale_seconds: float) -> list[Job]:
    """Work everything off that flows by itself; the answer is what does not end, and is not held back by somebody."""
    idle, flowing = 0, list[Job]()
    for _ in range(_ROUNDS):
        stage.sweep(stale_seconds=stale_seconds)
        worked = sum(stage.drain(kind) for kind in {job.kind for job in stage.jobs()})
        flowing = [job for job in stage.jobs() if job.state in FLOWING]
        if not flowing:
            return []
        idle = 0 if worked else idle + 1
        if idle > 3:
            return flowing
        # At last the longest lease of all has run out.
        stage.clock.advance(0 if worked else LEASE + 1 if idle < 2 else LONG)
    return flowing


def out_of_order(stage: Stage, *, repeated: bool) -> list[str]:
    """Messages of one key that did not go out in their order, each once (or, after a fault, at least once)."""
    found = []
    by_key: dict[str | None, list[str]] = {}
    for key, payload in stage.messages:
        by_key.setdefault(key, []).append(payload)
    for key, sent in by_key.items():
        firsts = list(dict.fromkeys(sent))
        if key == "k" and firsts[:2] != ["first", "second"]:
            found.append(f"messages of one key went out in the order {sent}")
        if not repeated and firsts != sent:
            found.append(f"messages went out twice: {sent}")
    return found
