"""Items copy their job's owner and kind, so that lists need no join; here the copies are written once more.

Nothing in Penstock lets them differ. It is for whoever has given jobs an owner by hand, or brought rows from elsewhere:
it may be run at any time, beside workers, and again without harm. A stretch of jobs is one transaction; interrupted, it
has done some of them, and the next run does the rest.
"""

from __future__ import annotations

from uuid import UUID

from penstock.store.engine import Store, Transaction
from penstock.store.statements import backfill as statements

_AT_ONCE = 200


def backfill(store: Store) -> int:
    """Bring all items up to their jobs; the answer is how many said otherwise."""
    changed, after = 0, UUID(int=0)
    while True:
        found = store.write(lambda one, place=after: _stretch(one, place))  # type: ignore[misc]
        if found is None:
            return changed
        after, some = found
        changed += some


def _stretch(transaction: Transaction, after: UUID) -> tuple[UUID, int] | None:
    asked = {"the_job_id": after, "the_limit": _AT_ONCE}
    ids = transaction.run(statements.next_jobs(transaction.dialect), asked).scalars()
    if not ids:
        return None
    copied = transaction.run(statements.copy_owner_and_kind(transaction.dialect), {"the_jobs": ids})
    return ids[-1], copied.rowcount
