"""Submitting many jobs that are alike, thousands with one statement."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON, encode, encode_each
from penstock.operations.new_jobs import record_jobs
from penstock.operations.request import Request
from penstock.operations.submit import submit
from penstock.store.transaction import Transaction

_BATCH_SIZE = 5_000


def submit_many(
    transaction: Transaction, kind: Kind, params: Iterable[JSON], request: Request, *, max_bytes: int
) -> list[UUID]:
    """Record one job for each of ``params``, all alike but for that; the answer is their ids in order."""
    for name in ("unique_key", "idempotency_key", "fresh_for"):
        if getattr(request, name) is not None:
            raise InvalidInput(f"{name} names one job: submit those that have one singly", field=name)
    if kind.policy.queue_limit is not None:
        # Each of them has to find its place below the bound.
        return [submit(transaction, kind, value, request, items=None, max_bytes=max_bytes).job.id for value in params]
    ids: list[UUID] = []
    waiting = iter(params)
    while batch := list(islice(waiting, _BATCH_SIZE)):
        texts = encode_each(batch, max_bytes=max_bytes)
        if texts is None:
            texts = [
                encode(value, max_bytes=max_bytes, at=f"params[{index}]") for index, value in enumerate(batch, len(ids))
            ]
        ids += record_jobs(transaction, kind, texts, request)
    if ids and not request.is_held:
        transaction.wake(kind.name)
    return ids
