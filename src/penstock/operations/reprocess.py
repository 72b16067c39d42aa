"""REPROCESS: some items of a finished job run again, in a new run that the history shows."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.errors import InvalidInput, TransitionRefused
from penstock.lifecycle.bounds import ITEM_ID
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import Job
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import storable_text
from penstock.lifecycle.states import ENDED, ItemRole, ItemStatus, Phase
from penstock.lifecycle.transitions import REPROCESS
from penstock.operations.change import change
from penstock.operations.control import reschedule
from penstock.operations.read_jobs import get_job, not_found
from penstock.store.statements import reprocess as statements
from penstock.store.statements.control import lock_seen_by
from penstock.store.transaction import Transaction

FAILED_ONES = (ItemStatus.ERROR, ItemStatus.NOT_FOUND)
_MOST_ITEMS = 10_000
_MOST_CODES = 100


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
    they are. ``permanent`` says whether failures that were final by their nature are tried again too.
    """
    if not kind.policy.reprocess:
        raise TransitionRefused(
            f"jobs of kind {kind.name!r} are not reprocessed: what they ended as is final; submit a new one",
            code="REPROCESS_NOT_ALLOWED",
        )
    if not set(statuses) <= ENDED:
        raise InvalidInput("only items that ended can run again: DONE, ERROR, NOT_FOUND or SKIPPED", field="statuses")
    if item_ids is not None and not 0 < len(item_ids) <= _MOST_ITEMS:
        raise InvalidInput(f"name 1 to {_MOST_ITEMS:,} items, not {len(item_ids):,}", field="item_ids")
    for one in item_ids or ():
        ITEM_ID.require(one)
    if error_codes is not None and not 0 < len(error_codes) <= _MOST_CODES:
        raise InvalidInput(f"name 1 to {_MOST_CODES} error codes, not {len(error_codes):,}", field="error_codes")
    reason = None if reason is None else storable_text(reason)
    dialect = transaction.dialect
    get_job(transaction, job_id, caller)  # nothing of a job that the caller may not see is locked
    named = {"the_job_id": job_id}
    transaction.run(statements.lock_held_items(dialect), named)
    _open_run(transaction, job_id, caller, reason)
    before = get_job(transaction, job_id, caller)
    dropped = transaction.run(statements.drop_finalize(dialect), named).scalars()
    chosen = {
        **named,
        "the_statuses": [status.value for status in statuses],
        "the_reset": reset_attempts,
        "the_max_attempts": kind.policy.retries + 1,
        "the_permanent": permanent,
    }
    by_item, by_code = item_ids is not None, error_codes is not None
    if item_ids is not None:
        chosen["the_items"] = list(item_ids)
    if error_codes is not None:
        chosen["the_codes"] = [storable_text(code) for code in error_codes if code is not None]
        chosen["the_uncoded"] = None in error_codes
    counts = transaction.run(statements.count_chosen(dialect, by_item=by_item, by_code=by_code), chosen).all()
    planning = before.phase is Phase.BATCHING
    all_over = not dropped and not planning and before.progress.processed == before.progress.total
    # Whoever names codes means those items; finalizing again what has not changed would be a surprise.
    if not counts and (by_code or all_over):
        raise TransitionRefused(
            f"job {job_id} has no item to reprocess: there is none of these statuses and codes, or they have used up "
            "their tries or failed for good; ask with new tries, or for the permanent ones too",
            code="NOTHING_TO_REPROCESS",
        )
    if counts:
        transaction.run(statements.return_chosen(dialect, by_item=by_item, by_code=by_code), chosen)
    if counts or dropped:
        of_items = {status: count for role, status, count in counts if role == ItemRole.ITEM}
        transaction.run(
            statements.uncount(dialect),
            {
                **named,
                "the_processed": sum(of_items.values()),
                "the_failed": of_items.get(ItemStatus.ERROR, 0),
                "the_not_found": of_items.get(ItemStatus.NOT_FOUND, 0),
                "the_skipped": of_items.get(ItemStatus.SKIPPED, 0),
                "the_returned": sum(count for _, _, count in counts) - sum(ready is not None for ready in dropped),
            },
        )
    reschedule(transaction, job_id)
    return get_job(transaction, job_id, caller)


def _open_run(transaction: Transaction, job_id: UUID, caller: Caller, reason: str | None) -> None:
    """REPROCESS, or say why not."""
    dialect = transaction.dialect
    named = {"the_job_id": job_id, "the_caller_id": caller.id}
    statement = statements.open_run(dialect, caller.sight)
    if change(transaction, REPROCESS, statement, named, caller, reason=reason):
        return
    # What refused it may be gone by now. With the job locked, what is found is also the reason.
    row = transaction.run(lock_seen_by(dialect, caller.sight), named).one_or_none()
    if row is None:
        raise not_found(job_id)
    if row.state not in REPROCESS.sources:
        raise TransitionRefused(f"job {job_id} is {row.state}: only a succeeded or failed job is reprocessed")
    if row.leader_id is not None:
        raise TransitionRefused(
            f"job {job_id} has no items of its own, job {row.leader_id} did its work; submit a new one",
            code="JOB_SHARED",
        )
    if not change(transaction, REPROCESS, statement, named, caller, reason=reason):
        raise TransitionRefused(
            f"job {job_id} is not reprocessed while another {row.kind!r} job of key {row.unique_key!r} is active; "
            "wait for that one or cancel it",
            code="UNIQUE_KEY_IN_USE",
        )
