"""The kinds the engine's tests are made with: every shape a job can have, and every limit."""

from __future__ import annotations

from typing import Any

from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy


class PlanProcessFinalize:
    """All three steps."""

    def plan(self, job: Any) -> None: ...

    def process(self, item: Any) -> None: ...

    def finalize(self, job: Any) -> None: ...


class ProcessFinalize:
    """Items are given with the job, or it has one."""

    def process(self, item: Any) -> None: ...

    def finalize(self, job: Any) -> None: ...


def process(item: Any) -> None:
    """One step."""


def engine_kinds() -> tuple[Kind, ...]:
    """A single step, one that may run again, a planned one, one that is given its items, one with every limit."""
    return (
        Kind.of("single", process, Policy(retries=2, backoff="5s fixed")),
        Kind.of("again", process, Policy(retries=1, backoff="5s fixed", reprocess=True)),
        Kind.of("planned", PlanProcessFinalize, Policy(retries=2, backoff="5s fixed", reprocess=True)),
        Kind.of("bulk", ProcessFinalize, Policy(retries=1, backoff="5s fixed")),
        Kind.of(
            "limited",
            ProcessFinalize,
            Policy(
                retries=1,
                backoff="5s fixed",
                reprocess=True,
                queue_limit=3,
                hold_limit=70,
                wait_limit=60,
                run_limit=120,
                abandon_after=200,
                prune_result=True,
            ),
        ),
    )
