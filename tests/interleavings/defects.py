"""Defects put back into the engine, each a few lines: what the check is worth is how many of them it finds.

Those with a name of a letter and a number were really there once. The others are guards taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import unwrap
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from sqlalchemy import true

from penstock.operations import control, reprocess, single_flight, submit
from penstock.operations.read_jobs import get_job
from penstock.store.dialects.postgresql.dialect import PostgreSQL
from penstock.store.queries import change_state, unique_keys
from penstock.store.queries import control as control_queries
from penstock.store.queries import job_items as job_items_queries
from penstock.store.queries import maintenance as maintenance_queries
from penstock.store.queries import record as record_queries
from penstock.store.queries import reprocess as reprocess_queries
from penstock.store.queries import settle as settle_queries
from penstock.store.queries.built_once import built_once
from penstock.store.transaction import Transaction

PutBack = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect, and the operations in whose interleavings it shows."""

    name: str
    scene: str
    operations: tuple[str, ...]
    fault: str
    """What the finding says."""
    put_back: PutBack


DEFECTS: dict[str, Defect] = {}


def defect(scene: str, operations: str, fault: str) -> Callable[[PutBack], PutBack]:
    """Add one under its function's name."""

    def add(put_back: PutBack) -> PutBack:
        name = put_back.__name__
        DEFECTS[name] = Defect(name, scene, tuple(operations.split(" + ")), fault, put_back)
        return put_back

    return add


def _unlocked(build: Callable[..., Any]) -> Callable[..., Any]:
    """The same statement, but its rows are not locked."""

    def build_unlocked(*arguments: Any, **named: Any) -> Any:
        statement = build(*arguments, **named)._generate()
        statement._for_update_arg = None
        return statement

    build_unlocked.__name__ = build.__name__
    return built_once(build_unlocked)


def _without_condition(statement: Any, column: str) -> Any:
    """The same statement without its conditions on a column."""
    changed = statement._generate()
    changed._where_criteria = tuple(one for one in statement._where_criteria if column not in str(one))
    return changed


def _without_lease(build: Callable[..., Any]) -> Callable[..., Any]:
    """The same statement, whoever holds the lease."""

    def build_unfenced(dialect: Any) -> Any:
        return _without_condition(build(dialect), "lease")

    build_unfenced.__name__ = build.__name__
    return built_once(build_unfenced)


# Those that were there ------------------------------------------------------------------------------------------------


@defect("lead_requeued", "cancel L", "STUCK")
def f01_a_late_follower_is_not_started(patch: pytest.MonkeyPatch) -> None:
    """Whoever joined while the leader was back in line is started neither by the heir nor when that ends."""
    patch.setattr(single_flight, "start_followers", lambda *_: None)


@defect("running", "cancel L + done h1", "without a bound")
def f14_a_record_waits_as_long_as_somebody_likes(patch: pytest.MonkeyPatch) -> None:
    """A worker waits, with its items locked, for the end of somebody's transaction."""
    patch.setattr(PostgreSQL, "begin_bounded", lambda _ways, connection, _seconds: connection.exec_driver_sql("BEGIN"))


@defect("lead_left_alone", "requeue", "cannot be paused")
def f15_followed_is_never_cleared(patch: pytest.MonkeyPatch) -> None:
    """A job whose last follower has left cannot be paused."""
    change_job = control_queries._change_job

    def by_the_mark(dialect: Any, transition: Any, sight: Any, *, is_locked: bool) -> Any:
        return change_job(dialect, transition, sight, is_locked=False)

    patch.setattr(control_queries, "_change_job", by_the_mark)


@defect("planning_expired", "rescue + plan more p1", "NOT SERIAL")
def n1_a_plan_adds_items_after_its_lease(patch: pytest.MonkeyPatch) -> None:
    """The lease is looked at, and not kept."""
    patch.setattr(job_items_queries, "_hold_plan", _unlocked(job_items_queries._hold_plan))


@defect("running", "reprocess L + done h1", "NOT SERIAL")
def n2_reprocess_decides_by_an_old_read(patch: pytest.MonkeyPatch) -> None:
    """Whether there is anything to do is read before the job is changed."""
    seen: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def read_once(transaction: Any, job_id: Any, caller: Any) -> Any:
        if transaction not in seen:
            seen[transaction] = get_job(transaction, job_id, caller)
        return seen[transaction]

    patch.setattr(reprocess, "get_job", read_once)


@defect("paused", "pause L + resume L", "NOT SERIAL")
def n3_a_refusal_is_explained_by_a_second_read(patch: pytest.MonkeyPatch) -> None:
    """What is found then is told as the reason, though it would not have refused it."""

    def change(transaction: Any, transition: Any, job_id: Any, caller: Any, reason: Any) -> Any:
        changed = control._try(transaction, transition, job_id, caller, reason)
        if changed is None:
            raise control._refusal(transaction, transition, job_id, control._lock(transaction, job_id, caller))
        return changed

    patch.setattr(control, "_change", change)


@defect("lead_running", "submit by dora, if not fresh + done h1", "NOT SERIAL")
def n5_a_fresh_result_is_looked_for_once(patch: pytest.MonkeyPatch) -> None:
    """A leader that succeeds between that look and the insert is neither followed nor copied."""
    take_unique_key = submit._take_unique_key

    def without_second_look(transaction: Any, kind: Any, new: Any, request: Any, **with_items: bool) -> Any:
        return take_unique_key(transaction, kind, new, replace(request, fresh_for=None), **with_items)

    patch.setattr(submit, "_take_unique_key", without_second_look)


@defect("given_timed_out_finalizing", "reprocess L + done h2", "DEADLOCK")
def n6_reprocess_locks_the_job_before_its_items(patch: pytest.MonkeyPatch) -> None:
    """A record locks them the other way round."""
    patch.setattr(reprocess_queries, "_lock_held_items", _unlocked(reprocess_queries._lock_held_items))


@defect("limited_waited", "claim 1 + fail waiting", "which it followed, had not")
def n7_a_follower_fails_alone(patch: pytest.MonkeyPatch) -> None:
    """The limit on waiting is applied to followers, whose leader somebody has locked just now."""
    waited_too_long = maintenance_queries._waited_too_long

    @built_once
    def _waited_too_long(dialect: Any) -> Any:
        return _without_condition(waited_too_long(dialect), "leader_id")

    patch.setattr(maintenance_queries, "_waited_too_long", _waited_too_long)


@defect("bounded", "submit without key + submit without key", "NOT SERIAL")
def q1_submits_count_at_the_same_time(patch: pytest.MonkeyPatch) -> None:
    """Each misses the other, and more wait than ``queue_limit`` allows."""
    patch.setattr(Transaction, "take_turns", lambda *_: None)


# Guards taken away ----------------------------------------------------------------------------------------------------


@defect("given_both", "done h1 + done h2", "LOST")
def record_does_not_lock_the_job(patch: pytest.MonkeyPatch) -> None:
    """Both find the count incomplete, or both complete."""
    patch.setattr(settle_queries, "_lock_jobs", _unlocked(settle_queries._lock_jobs))


@defect("lead_running", "submit by dora + done h1", "NOT SERIAL")
def a_follower_joins_without_the_leaders_lock(patch: pytest.MonkeyPatch) -> None:
    """The leader ends without knowing of it."""
    patch.setattr(unique_keys, "_leading_job", _unlocked(unique_keys._leading_job))


@defect("running_again", "done h1 + done h2", "StatementRefused")
def an_outcome_needs_no_lease(patch: pytest.MonkeyPatch) -> None:
    """A worker that lost its item ends it all the same."""
    for name in ("_finish_items", "_finish_held_items"):
        patch.setattr(record_queries, name, _without_lease(getattr(record_queries, name)))


@defect("queued", "cancel L + pause L", "is not legal")
def changes_are_not_guarded_by_the_state(patch: pytest.MonkeyPatch) -> None:
    """Every transition is made from any state."""
    patch.setattr(change_state, "or_", lambda *_: true())
    patch.setattr(control_queries, "_change_job", built_once(unwrap(control_queries._change_job)))
