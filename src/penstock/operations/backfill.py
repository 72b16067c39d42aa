"""Items copy their job's owner and kind, so that lists need no join; here the copies are written once more.

Nothing in Penstock lets them differ. It is for whoever has given jobs an owner by hand, or brought rows from elsewhere:
it may be run at any time, beside workers, and again without harm. A stretch of jobs is one transaction; interrupted, it
has done some of them, and the next run does the rest.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from penstock.store.engine import Store
from penstock.store.queries import backfill as queries
from penstock.store.transaction import Transaction

_BATCH_SIZE = 200


def backfill(store: Store) -> int:
    """Bring all items up to their jobs; the answer is how many said otherwise."""
    changed_count, after = 0, UUID(int=0)
    while True:
        stretch = store.write(partial(_backfill_behind, after=after))
        if stretch is None:
            return changed_count
        after, copied_count = stretch
        changed_count += copied_count


def _backfill_behind(transaction: Transaction, after: UUID) -> tuple[UUID, int] | None:
    """A stretch of jobs: its last one, and how many of its items were changed."""
    job_ids = queries.next_jobs(transaction, after, limit=_BATCH_SIZE)
    return (job_ids[-1], queries.copy_owner_and_kind(transaction, job_ids)) if job_ids else None
