"""Submitting the work of a job that is over again, as a new job."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from penstock.errors import TransitionRefused
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import Job
from penstock.lifecycle.kind import Kinds
from penstock.lifecycle.planned_item import Planned
from penstock.lifecycle.states import ItemRole
from penstock.operations.control import require_ours
from penstock.operations.read_jobs import get_job, items
from penstock.operations.request import Request
from penstock.operations.submit import submit
from penstock.store.queries.prune import keep_jobs
from penstock.store.queries.settle import deciding_item
from penstock.store.transaction import Transaction

_PAGE = 1_000
_PLAN = 0
"""A plan's position."""


def rerun(transaction: Transaction, kinds: Kinds, job_id: UUID, caller: Caller, *, max_bytes: int) -> Job:
    """SUBMIT the same again: kind, owner, title, key, params, and the items that were given with it.

    A job with a plan makes its items anew. One that followed another has none of its own: it is given its leader's,
    which did the same work.
    """
    get_job(transaction, job_id, caller)  # nothing of a job that the caller may not see is locked
    keep_jobs(transaction, [job_id])
    job = get_job(transaction, job_id, caller)
    if not job.finished:
        raise TransitionRefused(f"job {job_id} is {job.state.value}: wait until it is over, or cancel it first")
    require_ours(job, "it cannot be submitted; send its task again")
    kind = kinds.get(job.kind)
    request = Request(
        owner=job.user_id,
        caller=caller,
        unique_key=job.unique_key,
        priority=job.priority,
        file_id=job.file_id,
        title=job.title,
    )
    work_of = job.leader_id or job.id
    has_plan = deciding_item(transaction, work_of, _PLAN) is not None
    given_items = None if kind.single_step or has_plan else _inputs(transaction, work_of)
    return submit(transaction, kind, job.params, request, items=given_items, max_bytes=max_bytes).job


def _inputs(transaction: Transaction, job_id: UUID) -> Iterator[Planned]:
    """What each item of a job was given, a page at a time."""
    after = 0
    while page := items(transaction, job_id, after=after, limit=_PAGE):
        yield from (Planned(item.input, item.normalized) for item in page if item.role is ItemRole.ITEM)
        after = page[-1].position
