"""What the engine's rows say beside what the model says: every difference in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from math import isclose
from typing import Any

from penstock.testing.invariants import Picture
from tests.model.model import Item, Job, Line, Model

_OF_JOB = (
    "kind", "user_id", "unique_key", "params", "priority", "max_retries", "state", "phase", "run", "leader_id",
    "next_claim_at", "attempts", "retries", "deaths", "result", "message", "failed_phase", "killed_reason",
    "state_since", "recent_at", "run_at",
    "created_at", "queued_at", "started_at", "completed_at", "committed_at", "abandoned_at", "canceled_at",
)  # fmt: skip
_SUMS = ("waiting_seconds", "active_seconds", "paused_seconds", "recent_items", "recent_seconds")
_OF_ITEM = (
    "role", "position", "status", "attempts", "not_found_attempts", "earlier_not_found", "deaths", "ready_at", "lease",
    "locked_by", "locked_at", "lock_expires_at",
)  # fmt: skip
_JSON_OF_ITEM = ("input", "normalized", "result")


def differences(pictures: Sequence[Picture], model: Model) -> list[str]:
    """Everything in which the two disagree."""
    found = {picture.job.id: picture for picture in pictures}
    only = [f"job {job_id} is only in the engine" for job_id in found.keys() - model.jobs.keys()]
    only += [f"job {job_id} is only in the model" for job_id in model.jobs.keys() - found.keys()]
    return only + [
        f"job {job.id} ({job.kind}, of {job.user_id}): {wrong}"
        for job in model.jobs.values()
        if job.id in found
        for wrong in _differences_of(found[job.id], job)
    ]


def _differences_of(picture: Picture, job: Job) -> Iterator[str]:
    row = picture.job
    yield from _unequal("its", row, job, _OF_JOB)
    for column in _SUMS:
        if not isclose(getattr(row, column), getattr(job, column), rel_tol=1e-9, abs_tol=1e-9):
            yield f"its {column} is {getattr(row, column)} in the engine, {getattr(job, column)} in the model"
    counts = (row.total_items, row.processed_items, row.failed_items, row.not_found_items, row.skipped_items)
    if counts != job.counts:
        yield f"its counts are {counts} in the engine, {job.counts} in the model"
    if _failure(row) != job.failure:
        yield f"its failure is {_failure(row)} in the engine, {job.failure} in the model"
    for item, expected in zip_longest(picture.items, sorted(job.items.values(), key=lambda one: one.position)):
        yield from _item_differences(item, expected)
    for line, said in zip_longest(_lines(picture.events), job.history):
        if line != said:
            yield f"its history says {line} in the engine, {said} in the model"


def _item_differences(row: Any, item: Item | None) -> Iterator[str]:
    if row is None or item is None:
        yield f"it has {row} in the engine, {item} in the model"
        return
    name = f"{item.role.value} {item.position}:"
    yield from _unequal(name, row, item, _OF_ITEM)
    for column in _JSON_OF_ITEM:
        kept, expected = getattr(row, f"{column}_json"), getattr(item, column)
        if kept != expected:
            yield f"{name} {column} is {kept} in the engine, {expected} in the model"
    if _failure(row) != item.failure:
        yield f"{name} failure is {_failure(row)} in the engine, {item.failure} in the model"


def _unequal(name: str, row: Any, expected: Job | Item, columns: Sequence[str]) -> Iterator[str]:
    for column in columns:
        if getattr(row, column) != getattr(expected, column):
            yield f"{name} {column} is {getattr(row, column)} in the engine, {getattr(expected, column)} in the model"


def _failure(row: Any) -> tuple[Any, ...]:
    return row.last_error, row.error_code, row.error_type, row.killed_by, row.error_class


def _lines(events: Sequence[Any]) -> list[Line]:
    return [
        Line(one.run, one.from_state, one.to_state, one.actor, one.actor_id, one.reason, one.data, one.at)
        for one in events
    ]
