"""REPROCESS: some items of a finished job run again, in a new run that the history shows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from penstock.errors import InvalidInput, TransitionRefused
from penstock.lifecycle.bounds import ITEM_ID
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import Job
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import storable_text
from penstock.lifecycle.states import ENDED_STATUSES, ItemRole, ItemStatus, Phase
from penstock.lifecycle.transitions import REPROCESS
from penstock.operations.control import reschedule
from penstock.operations.read_jobs import get_job, not_found
from penstock.store.job_changes import change
from penstock.store.queries import reprocess as queries
from penstock.store.queries.control import lock_job
from penstock.store.queries.reprocess import Choice, ChosenCount, CountCorrection, DroppedItem
from penstock.store.transaction import Transaction

FAILED_ONES = (ItemStatus.ERROR, ItemStatus.NOT_FOUND)
_MAX_ITEMS = 10_000
_MAX_CODES = 100


def reprocess(
    transaction: Transaction,
    kind: Kind,
    job_id: UUID,
    caller: Caller,
    *,
    statuses: Sequence[ItemStatus] = FAILED_ONES,
    item_ids: Sequence[int] | None = None,
    error_codes: Sequence[str | None] | None = None,
    reset_attempts: bool = True,
    permanent: bool = True,
    reason: str | None = None,
) -> Job:
    """Open a new run for the items in ``statuses`` (or those among them that are named, or ended with such a code).

    ``reset_attempts`` gives each its full number of tries again; without it, items that have used them up stay as
    they are: what failed by the bound of failures, what was not found by that of its own. ``permanent`` says whether
    failures that were final by their nature are tried again too.
    """
    if not kind.policy.reprocess:
        raise TransitionRefused(
            f"jobs of kind {kind.name!r} are not reprocessed: what they ended as is final; submit a new one",
            code="REPROCESS_NOT_ALLOWED",
        )
    if not set(statuses) <= ENDED_STATUSES:
        raise InvalidInput("only items that ended can run again: DONE, ERROR, NOT_FOUND or SKIPPED", field="statuses")
    if item_ids is not None and not 0 < len(item_ids) <= _MAX_ITEMS:
        raise InvalidInput(f"name 1 to {_MAX_ITEMS:,} items, not {len(item_ids):,}", field="item_ids")
    for item_id in item_ids or ():
        ITEM_ID.require(item_id)
    if error_codes is not None and not 0 < len(error_codes) <= _MAX_CODES:
        raise InvalidInput(f"name 1 to {_MAX_CODES} error codes, not {len(error_codes):,}", field="error_codes")
    reason = None if reason is None else storable_text(reason)
    get_job(transaction, job_id, caller)  # nothing of a job that the caller may not see is locked
    queries.lock_held_items(transaction, job_id)
    _open_run(transaction, job_id, caller, reason)
    before = get_job(transaction, job_id, caller)
    dropped_item = queries.drop_finalize(transaction, job_id)
    choice = Choice(
        job_id,
        statuses,
        max_failed_attempts=kind.policy.retries + 1,
        max_not_found_attempts=kind.policy.not_found_retries + 1,
        reset_attempts=reset_attempts,
        permanent=permanent,
        item_ids=item_ids,
        error_codes=None
        if error_codes is None
        else [None if code is None else storable_text(code) for code in error_codes],
    )
    counts = queries.count_chosen(transaction, choice)
    planning = before.phase is Phase.BATCHING
    all_over = dropped_item is None and not planning and before.progress.processed == before.progress.total
    # Whoever names codes means those items; finalizing again what has not changed would be a surprise.
    if not counts and (error_codes is not None or all_over):
        raise TransitionRefused(
            f"job {job_id} has no item to reprocess: there is none of these statuses and codes, or they have used up "
            "their tries or failed for good; ask with new tries, or for the permanent ones too",
            code="NOTHING_TO_REPROCESS",
        )
    if counts:
        queries.return_chosen(transaction, choice)
    if counts or dropped_item is not None:
        queries.uncount(transaction, job_id, _count_correction(counts, dropped_item))
    reschedule(transaction, job_id)
    return get_job(transaction, job_id, caller)


def _count_correction(counts: Sequence[ChosenCount], dropped_item: DroppedItem | None) -> CountCorrection:
    """What the job has counted of the items that run again, and how many more wait to be claimed."""
    of_items = {count.status: count.items for count in counts if count.role == ItemRole.ITEM}
    no_more = 0 if dropped_item is None or dropped_item.ready_at is None else 1
    return CountCorrection(
        processed=sum(of_items.values()),
        failed=of_items.get(ItemStatus.ERROR, 0),
        not_found=of_items.get(ItemStatus.NOT_FOUND, 0),
        skipped=of_items.get(ItemStatus.SKIPPED, 0),
        returned=sum(count.items for count in counts) - no_more,
    )


def _open_run(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None) -> None:
    """REPROCESS, or say why not."""
    open_run = partial(queries.open_run, job_id=job_id, caller=caller)
    if change(transaction, REPROCESS, open_run, caller, reason=reason):
        return
    # What refused it may be gone by now. With the job locked, what is found is also the reason.
    job = lock_job(transaction, job_id, caller)
    if job is None:
        raise not_found(transaction, job_id, caller)
    if job.state not in REPROCESS.sources:
        raise TransitionRefused(f"job {job_id} is {job.state}: only a succeeded or failed job is reprocessed")
    if job.leader_id is not None:
        raise TransitionRefused(
            f"job {job_id} has no items of its own, job {job.leader_id} did its work; submit a new one",
            code="JOB_SHARED",
        )
    if not change(transaction, REPROCESS, open_run, caller, reason=reason):
        raise TransitionRefused(
            f"job {job_id} is not reprocessed while another {job.kind!r} job of key {job.unique_key!r} is active; "
            "wait for that one or cancel it",
            code="UNIQUE_KEY_IN_USE",
        )
