"""Samples of the lanes: what the controllers of each worker chose, beside the signals they followed.

They are for people who look (a job's answer, ``/metrics``, charts); nothing decides by them. A day of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.lifecycle.payloads import JSON
from penstock.store.engine import Transaction
from penstock.store.statements import samples as statements

Gauges = Callable[[], Mapping[str, JSON]]
"""Figures of an application's own, by name, asked for with each sample of its kind."""
_KEPT_SECONDS = 86_400.0
_MOST = 2_000


@dataclass(frozen=True, slots=True)
class LaneSample:
    """What one worker's lane for a kind did lately, and how it is set."""

    kind: str
    at: datetime
    worker: str
    data: dict[str, Any]


def keep_samples(transaction: Transaction, worker: str, samples: Mapping[str, dict[str, Any]]) -> None:
    """One sample for each kind a worker was busy with."""
    for kind, data in samples.items():
        transaction.run(
            statements.insert_sample(transaction.ways), {"the_kind": kind, "the_worker": worker, "the_data": data}
        )


def samples(transaction: Transaction, *, since: datetime, kind: str | None = None) -> list[LaneSample]:
    """The samples behind a moment, the oldest first."""
    asked = {"the_moment": since, "the_kind": kind, "the_limit": _MOST}
    rows = transaction.run(statements.samples_since(transaction.ways, of_kind=kind is not None), asked)
    return [LaneSample(row.kind, row.at, row.worker, row.data) for row in rows]


def forget_samples(transaction: Transaction) -> int:
    """Drop those older than a day; the answer is how many."""
    ago = {"the_seconds_ago": -_KEPT_SECONDS}
    return transaction.run(statements.delete_samples(transaction.ways), ago).rowcount
