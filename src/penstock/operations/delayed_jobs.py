"""Releasing the jobs that were submitted for a later time.

A delayed job is one that was only recorded (``hold``), with a time at which it is released by itself. So nobody follows
it, it counts against no limit, and its owner may release or cancel it before: all as for any job that is held.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

import structlog

from penstock.errors import PenstockError, StoreLocked, StoreUnavailable
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.kind import Kind, Kinds
from penstock.operations.submit import submit_created
from penstock.store.engine import Store
from penstock.store.queries import delayed_jobs as queries
from penstock.store.transaction import Transaction

BATCH_SIZE = 500
_log = structlog.get_logger("penstock.scheduler")


def release_due(store: Store, kinds: Kinds) -> int:
    """SUBMIT for jobs whose time has come; the answer is how many of them there were.

    Each is a transaction of its own: one that somebody has locked keeps no other, and comes again in the next turn.
    """
    names = [kind.name for kind in kinds]
    due = store.read(partial(queries.due_jobs, kinds=names, limit=BATCH_SIZE), single_statement=True)
    return sum(_release(store, kinds.get(job.kind), job.id) for job in due)


def _release(store: Store, kind: Kind, job_id: UUID) -> bool:
    def operation(transaction: Transaction) -> bool:
        if not queries.lock_due(transaction, job_id):
            return False
        return submit_created(transaction, kind, job_id, SYSTEM, reason="its time has come")

    try:
        return store.write(operation, bounded=True)
    except StoreLocked as error:  # somebody's open transaction keeps this one, and no other
        _log.info("a job is left to the next look", job=str(job_id), error=str(error))
        return False
    except StoreUnavailable:
        raise
    except PenstockError as error:
        _log.warning("a job is not released yet; it is tried again", job=str(job_id), error=str(error), code=error.code)
        return False
