"""What may be done in a scene: everything people, workers, sweeps and relays can ask of the engine there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from penstock.errors import InvalidInput, JobNotFound, TransitionRefused, WorkerCrashed
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import owner, worker
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.states import ItemStatus, JobState
from penstock.lifecycle.transport import Message
from penstock.operations import control, heartbeat, maintenance, outbox
from penstock.operations.claim import Care, claim
from penstock.operations.items import item_texts
from penstock.operations.plan import add_planned
from penstock.operations.prune import clear_some, prune_jobs
from penstock.operations.record import LeaseLost, record, record_free
from penstock.operations.reprocess import reprocess
from penstock.operations.rerun import rerun
from penstock.operations.submit import submit_created
from penstock.store.transaction import Transaction
from penstock.testing.drive import LEASE, MAX_BYTES, SUSPECT_DEATHS, item_result, unhurried_marks
from tests.interleavings.scenes import DONE, FAILED, KEY, RETRIED, Stage
from tests.interleavings.scheduler import Operation

REFUSALS = (TransitionRefused, InvalidInput, JobNotFound, WorkerCrashed)
"""What an operation may be answered with when another one was there before it."""
_STALE_SECONDS = 900.0
Part = Callable[[Transaction], Any]


class _Operations:
    """Those of one scene, by name."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.found: dict[str, Operation] = {}

    def add(self, name: str, run: Callable[[int], Any], *, by_worker: bool = False, passes_over: bool = False) -> None:
        self.found[name] = Operation(name, run, by_worker, passes_over)

    def add_part(self, name: str, part: Part, *, passes_over: bool = False) -> None:
        """One of a worker or a sweep that is a single transaction."""
        run = partial(self.stage.store.write, part, bounded=True)
        self.add(name, lambda _slot: run(), by_worker=True, passes_over=passes_over)

    def title(self, job_id: UUID) -> str:
        return next((title for title, one in self.stage.jobs_by_title.items() if one == job_id), "a new one")


def operations(stage: Stage) -> dict[str, Operation]:
    """Everything that makes sense in the scene; much of it is refused there, which is an answer too."""
    those = _Operations(stage)
    if stage.unsent():
        _relays(those)
        return those.found
    for title in stage.jobs_by_title:
        _of_people(those, title)
    _submits(those)
    _claims(those)
    for name in stage.held:
        _of_holders(those, name)
    if len(stage.held) > 1:
        those.add("done all", _recording(stage, list(stage.held), DONE), by_worker=True)
    _sweeps(those)
    return those.found


def _of_people(those: _Operations, title: str) -> None:
    stage = those.stage
    job_id, caller, kind = stage.jobs_by_title[title], owner(stage.owners[title]), stage.kinds.get(stage.kind)

    def change(verb: Callable[..., Any], **named: Any) -> Callable[[int], Any]:
        return lambda _slot: stage.store.write(lambda one: verb(one, job_id, caller, **named)).state.value

    for verb in (control.cancel, control.pause, control.resume):
        those.add(f"{verb.__name__} {title}", change(verb))
    if title not in "LF":
        return
    for verb in (control.commit, control.abandon):
        those.add(f"{verb.__name__} {title}", change(verb))
    those.add(
        f"release {title}", lambda _slot: stage.store.write(lambda one: submit_created(one, kind, job_id, caller))
    )

    def again(transaction: Transaction, job_id: UUID, caller: Any, **named: Any) -> Any:
        return reprocess(transaction, kind, job_id, caller, **named)

    those.add(f"reprocess {title}", change(again))
    those.add(f"reprocess all of {title}", change(again, statuses=[ItemStatus.DONE, ItemStatus.ERROR]))


def _submits(those: _Operations) -> None:
    stage = those.stage

    def submit(who: str, *, key: str | None = KEY, **request: Any) -> Callable[[int], Any]:
        def run(slot: int) -> Any:
            made = stage.submit(
                stage.kind, {"n": 1},
                owner=who, caller=owner(who), title=f"S{slot}", unique_key=key, items=stage.given_items, **request,
            )  # fmt: skip
            return made.answer.value, those.title(made.job.id), made.job.state.value

        return run

    those.add("submit by dora", submit("dora"))
    those.add("submit by ann", submit("ann"))
    those.add("submit by dora, if not fresh", submit("dora", fresh_for=1e6))
    those.add("submit by ann with i", submit("ann", idempotency_key="i"))
    those.add("submit by dora, held", submit("dora", hold=True))
    if stage.kind == "bounded":
        those.add("submit without key", submit("eve", key=None))


def _claims(those: _Operations) -> None:
    stage, store = those.stage, those.stage.store

    def named(found: Any) -> list[tuple[str, int]]:
        return sorted((those.title(one.job_id), one.position) for one in found.items)

    def take(slot: int, size: int) -> Any:
        care = Care(size, SUSPECT_DEATHS)
        return named(
            claim(store, stage.kind, f"c{slot}", size=size, lease_seconds=LEASE, care=care, marks=unhurried_marks())
        )

    def take_one_of(slot: int) -> Any:
        job = stage.jobs_by_title["L"]
        return named(claim(store, stage.kind, f"c{slot}", size=1, lease_seconds=LEASE, job_id=job))

    for size in (1, 10):
        those.add(f"claim {size}", partial(take, size=size), by_worker=True, passes_over=True)
    if stage.jobs_by_title:
        those.add("claim of L", take_one_of, by_worker=True, passes_over=True)


def _of_holders(those: _Operations, name: str) -> None:
    stage = those.stage
    one, _ = stage.held[name]
    for word, outcome in {"done": DONE, "retry": RETRIED, "fail": FAILED, "give back": outcomes.released()}.items():
        those.add(f"{word} {name}", _recording(stage, [name], outcome), by_worker=True)
    free = [item_result(one, DONE)]
    those.add_part(
        f"done {name}, if free",
        lambda transaction: sorted(record_free(transaction, free, worker("w1"))[0]),
        passes_over=True,
    )
    those.add_part(f"beat {name}", lambda transaction: heartbeat.extend(transaction, [one], LEASE), passes_over=True)
    if name.startswith("p"):
        kind, more = stage.kinds.get(stage.kind), item_texts([7], MAX_BYTES, 1)
        those.add_part(f"plan more {name}", lambda transaction: add_planned(transaction, kind, one, more, after=1))


def _recording(stage: Stage, names: Sequence[str], outcome: Outcome) -> Callable[[int], Any]:
    """As a lane does it: first as if all were still ours."""
    holder = worker(stage.held[names[0]][1])
    batch = [item_result(stage.held[name][0], outcome) for name in names]

    def run(_slot: int) -> Any:
        try:
            return sorted(stage.store.write(lambda one: record(one, batch, holder, all_ours=True), bounded=True))
        except LeaseLost:
            return sorted(stage.store.write(lambda one: record(one, batch, holder), bounded=True))

    return run


def _sweeps(those: _Operations) -> None:
    stage = those.stage
    kinds, kind = stage.kinds, stage.kinds.get(stage.kind)
    parts: dict[str, Part] = {
        "rescue": lambda one: maintenance.rescue(one, kinds, SUSPECT_DEATHS),
        "requeue": maintenance.requeue_due,
        "mend stale": lambda one: maintenance.rescue_stuck(one, _STALE_SECONDS),
    }
    if kind.policy.hold_limit is not None:
        parts["cancel held"] = lambda one: maintenance.cancel_held(one, kind)
    if kind.policy.wait_limit is not None:
        parts["fail waiting"] = lambda one: maintenance.fail_waiting(one, kind)
    if kind.policy.run_limit is not None:
        parts["fail overrunning"] = lambda one: maintenance.fail_overrunning(one, kind)
    if kind.policy.abandon_after is not None:
        parts["abandon unused"] = lambda one: maintenance.abandon_unused(one, kind)
    if isinstance(kind.policy.keep_for, float):
        _prunes(those, parts, kind.name, kind.policy.keep_for)
    for name, part in parts.items():
        those.add_part(name, part, passes_over=True)
    those.add(
        "settle left behind",
        lambda _slot: maintenance.settle_left_behind(stage.store),
        by_worker=True,
        passes_over=True,
    )
    if stage.held:
        take_back = partial(maintenance.rescue_from, stage.store, kinds, "w1", SUSPECT_DEATHS)
        those.add("rescue from w1", lambda _slot: take_back(), by_worker=True, passes_over=True)


def _prunes(those: _Operations, parts: dict[str, Part], kind: str, seconds: float) -> None:
    stage, files = those.stage, Path("no-files")
    for state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED):
        parts[f"prune {state.value}"] = partial(prune_jobs, kind=kind, state=state, seconds=seconds)
    those.add("clear away", lambda _slot: clear_some(stage.store, (), files), by_worker=True, passes_over=True)
    job_id, caller = stage.jobs_by_title["L"], owner("ann")
    those.add(
        "rerun L",
        lambda _slot: (
            stage.store.write(lambda one: rerun(one, stage.kinds, job_id, caller, max_bytes=MAX_BYTES)).state.value
        ),
    )


def _relays(those: _Operations) -> None:
    stage = those.stage

    def send(message: Message) -> None:
        stage.messages.append((message.key, message.payload))

    those.add("relay", lambda _slot: outbox.relay(stage.store, send), by_worker=True, passes_over=True)
    those.add("publish elsewhere", lambda slot: stage.publish("elsewhere", f"by {slot}"))
    if stage.publishes_in_order:
        those.add("publish third", lambda slot: stage.publish("k", f"third by {slot}"))
