"""Pruning: jobs that have been kept for long enough are deleted, a few at a time.

A job is deleted in two steps, each a short transaction. First its row goes, with the idempotency keys that lead to it:
it is counted, and remembered, so that whoever asks for it is told. Then its items, its history and its tasks go, so
many rows at a time, and its file when no other job has it. A process that dies in between leaves the rest to the next
pass.

Nobody waits for a pass, and a pass waits for nobody: a job that somebody has locked stays for the next one. That is how
pruning meets everything else. Who changes a job, copies its result or submits its work again has its row locked, or
finds it gone and says so; a job of which a worker holds an item is left alone until that has come back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

import structlog

from penstock.errors import StoreLocked
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.retention import FOR_EVER, Retention, seconds_kept
from penstock.lifecycle.states import JobState
from penstock.operations.files import discard_bytes
from penstock.store.engine import Store
from penstock.store.queries import prune as queries
from penstock.store.queries.prune import Leftover, PrunedCount
from penstock.store.transaction import Transaction

JOBS_AT_ONCE = 200
ITEMS_AT_ONCE = 2_000
CLEARED_AT_ONCE = 500
"""Jobs whose items are deleted together."""
REMEMBERED_SECONDS = 30 * 86400.0
"""How long it is known of a job that it was pruned."""
_log = structlog.get_logger("penstock.prune")

FileUsers = Callable[[Sequence[UUID]], Collection[UUID]]
"""Which of these files an application still has, by what it keeps itself."""


@dataclass(frozen=True, slots=True)
class PruneRules:
    """What a pass goes by: the kinds, what holds where they say nothing, and how long idempotency keys are kept."""

    kinds: Kinds
    default: Retention = FOR_EVER
    keep_keys_for: float | None = None
    file_users: Sequence[FileUsers] = ()

    def seconds_kept(self, kind: Kind) -> dict[JobState, float]:
        """After how many seconds jobs of a kind go, by the state they ended in."""
        return seconds_kept(kind.policy, self.default)


def prune_some(store: Store, rules: PruneRules, files_directory: Path) -> bool:
    """One small step: some jobs of each kind, some of what is left of those before; is there perhaps more to do?"""
    more = False
    for kind in rules.kinds:
        for state, seconds in rules.seconds_kept(kind).items():
            part = partial(prune_jobs, kind=kind.name, state=state, seconds=seconds)
            more |= _unless_locked(store, part) == JOBS_AT_ONCE
    more |= clear_some(store, rules.file_users, files_directory)
    if rules.keep_keys_for is not None:
        more |= _unless_locked(store, partial(_forget_keys, seconds=rules.keep_keys_for)) == JOBS_AT_ONCE
    return more | (_unless_locked(store, _forget_deleted) == JOBS_AT_ONCE)


def _unless_locked(store: Store, part: Callable[[Transaction], int]) -> int:
    try:
        return store.write(part, bounded=True)
    except StoreLocked as error:
        _log.info("a part of the pruning is left to the next pass", error=str(error))
        return 0


def prune_jobs(
    transaction: Transaction, kind: str, state: JobState, seconds: float, *, limit: int = JOBS_AT_ONCE
) -> int:
    """Delete jobs of a kind that ended in this state longer ago than so many seconds; the answer is how many."""
    job_ids = queries.overdue_jobs(transaction, kind, state, seconds=seconds, limit=limit)
    if job_ids:
        keys = queries.lock_keys_of(transaction, job_ids)
        busy = set(queries.jobs_of_other_keys(transaction, job_ids, keys))
        job_ids = [job_id for job_id in job_ids if job_id not in busy]
    # Looked at again now that they are locked: a copy may have been made between that look and its lock.
    deleted_jobs = queries.delete_jobs(transaction, job_ids) if job_ids else []
    if not deleted_jobs:
        return 0
    queries.delete_keys_of(transaction, [job.id for job in deleted_jobs])
    queries.remember_deleted(transaction, deleted_jobs)
    items_count = sum(job.total_items for job in deleted_jobs)
    queries.add_to_counts(transaction, kind, state, jobs_count=len(deleted_jobs), items_count=items_count)
    transaction.log(
        "pruned: their time was over",
        level="info",
        jobs=len(deleted_jobs),
        items=items_count,
        kind=kind,
        state=state.value,
        kept_seconds=seconds,
    )
    return len(deleted_jobs)


def clear_some(store: Store, file_users: Sequence[FileUsers], files_directory: Path) -> bool:
    """Delete some of what is left of jobs that are gone; is there perhaps more?"""
    digests: list[str] = []

    def part(transaction: Transaction) -> int:
        digests.clear()
        leftover_jobs = queries.leftovers(transaction, limit=CLEARED_AT_ONCE)
        if not leftover_jobs:
            return 0
        job_ids = [leftover.id for leftover in leftover_jobs]
        if queries.delete_items_of(transaction, job_ids, limit=ITEMS_AT_ONCE) == ITEMS_AT_ONCE:
            return CLEARED_AT_ONCE
        queries.delete_rest_of(transaction, job_ids)
        # Not those whose file somebody has locked: they are looked at again in the next pass.
        return queries.note_cleared(transaction, _without_files(transaction, leftover_jobs, file_users, digests))

    cleared_count = _unless_locked(store, part)
    for digest in digests:
        discard_bytes(files_directory, digest, unless=partial(is_recorded, store, digest))
    return cleared_count == CLEARED_AT_ONCE


def is_recorded(store: Store, digest: str) -> bool:
    return store.read(partial(queries.has_file_with, sha256=digest), single_statement=True)


def _without_files(
    transaction: Transaction, leftover_jobs: Sequence[Leftover], file_users: Sequence[FileUsers], digests: list[str]
) -> list[UUID]:
    """Delete the records of files that nobody has any more; the answer is the jobs for which that is done."""
    file_ids = sorted({leftover.file_id for leftover in leftover_jobs if leftover.file_id is not None})
    if not file_ids:
        return [leftover.id for leftover in leftover_jobs]
    used_ids = {file_id for which in file_users for file_id in which(file_ids)}
    unused_ids = [file_id for file_id in queries.free_files(transaction, file_ids) if file_id not in used_ids]
    digests += queries.delete_unused_files(transaction, unused_ids)
    # Somebody submits work for one of the others just now, or it has gone with another job.
    busy = set(queries.existing_files(transaction, file_ids)) - set(unused_ids) - used_ids
    return [leftover.id for leftover in leftover_jobs if leftover.file_id not in busy]


def _forget_keys(transaction: Transaction, seconds: float) -> int:
    return queries.delete_old_keys(transaction, seconds=seconds, limit=JOBS_AT_ONCE)


def _forget_deleted(transaction: Transaction) -> int:
    return queries.forget_deleted(transaction, seconds=REMEMBERED_SECONDS, limit=JOBS_AT_ONCE)


def count_overdue(store: Store, rules: PruneRules) -> list[PrunedCount]:
    """What a pass would delete now, by kind and the state they ended in; a part without anything is left out."""
    counts = []
    for kind in rules.kinds:
        for state, seconds in rules.seconds_kept(kind).items():
            question = partial(queries.count_overdue, kind=kind.name, state=state, seconds=seconds)
            count = store.read(question, single_statement=True)
            if count.jobs:
                counts.append(PrunedCount(kind.name, state.value, *count))
    return counts


def count_pruned(store: Store) -> list[PrunedCount]:
    """How many jobs and items were pruned since the database was made, by kind and the state they ended in."""
    return store.read(queries.pruned_counts_of_all, single_statement=True)
