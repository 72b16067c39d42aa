"""The kinds that the model and the engine are compared with: every shape a job can have, and every limit."""

from __future__ import annotations

from typing import Any

from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from tests.model.model import Rules

KINDS = (
    Rules("single", retries=2, keep_for=50, keep_failed_for=200),
    Rules("again", retries=1, not_found_retries=1, reprocess=True, keep_failed_for=20),
    Rules("planned", plans=True, has_finalizer=True, retries=2, reprocess=True),
    Rules("listed", plans=True, retries=1, reprocess=True, run_limit=100),
    Rules("bulk", has_finalizer=True, retries=1, abandon_after=300, prune_result=True, keep_for=20),
    Rules(
        "limited", has_finalizer=True, retries=1, reprocess=True, queue_limit=3, hold_limit=70, wait_limit=60,
        run_limit=120, abandon_after=200,
    ),
    # Its backoff is longer than what it may wait, and what it may run.
    Rules("hurried", retries=2, backoff=90, reprocess=True, queue_limit=2, wait_limit=60, run_limit=80),
)  # fmt: skip

DEPLOYMENTS = (
    Rules("single", retries=0, backoff=1),
    Rules("single", plans=True, retries=2),
    Rules("again", retries=3, reprocess=True),
    Rules("again", retries=0, run_limit=50),
    Rules("planned", retries=0, reprocess=True),
    Rules("planned", plans=True, retries=2, hold_limit=60, wait_limit=60),
    Rules("listed", has_finalizer=True, retries=1, reprocess=True),
    Rules("bulk", retries=1, reprocess=True),
    Rules("limited", plans=True, has_finalizer=True, retries=3, reprocess=True, queue_limit=1, wait_limit=200),
    Rules("hurried", retries=2, reprocess=True, abandon_after=60, prune_result=True),
)
"""Other versions of them: steps added and removed, other retries and limits."""


def kind_of(rules: Rules) -> Kind:
    """The kind for the engine that the rules describe."""
    steps = (
        {"process": _step}
        | ({"plan": _step} if rules.plans else {})
        | ({"finalize": _step} if rules.has_finalizer else {})
    )
    policy = Policy(
        retries=rules.retries,
        backoff=f"{rules.backoff}s fixed",
        not_found_retries=rules.not_found_retries,
        reprocess=rules.reprocess,
        priority=rules.priority,
        queue_limit=rules.queue_limit,
        hold_limit=rules.hold_limit,
        wait_limit=rules.wait_limit,
        run_limit=rules.run_limit,
        abandon_after=rules.abandon_after,
        prune_result=rules.prune_result,
        keep_for=rules.keep_for,
        keep_failed_for=rules.keep_failed_for,
    )
    return Kind.of(rules.name, type("Steps", (), steps) if len(steps) > 1 else _step, policy)


def _step(*_: Any) -> None:
    """Nothing is run here: the machine says how each try ends."""
