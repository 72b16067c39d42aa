"""What tests of operations say again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from penstock.lifecycle import outcomes
from penstock.operations import read_jobs
from penstock.testing.drive import Workbench

DONE = outcomes.done('{"ok":true}')
FAILED = outcomes.failed("no", "NO")
RETRIED = outcomes.retried("later", "LATER", 5.0)


def write(bench: Workbench, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """An operation in a transaction of its own."""
    return bench.store.write(lambda transaction: verb(transaction, *arguments, **named))


def history(bench: Workbench, job_id: UUID) -> list[Any]:
    """The lines of a job's history."""
    return bench.store.read(lambda transaction: read_jobs.history(transaction, job_id))


def items(bench: Workbench, job_id: UUID) -> list[Any]:
    """A job's items."""
    return bench.store.read(lambda transaction: read_jobs.items(transaction, job_id))
