"""Debug log lines about a slice; failures have lines of their own (see failures)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import structlog

from penstock.lifecycle.states import ItemStatus
from penstock.operations.record import ItemResult

_log = structlog.get_logger("penstock.items")


def log_slice(kind: str, batch: Sequence[ItemResult]) -> None:
    """These outcomes were written: what was decided of each, and why."""
    for result in batch:
        outcome = result.outcome
        if outcome.error is not None:
            _log.debug(
                "an item is tried again" if outcome.status is ItemStatus.PENDING else "an item ended badly",
                job=str(result.job_id),
                item=result.item_id,
                status=outcome.status.value,
                code=outcome.code,
                delay=outcome.delay,
            )
    counts = Counter(result.outcome.status.value for result in batch)
    _log.debug("a slice is recorded", kind=kind, items=len(batch), **counts)
