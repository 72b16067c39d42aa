"""How long jobs that are over are kept: each kind says it, or leaves it to the application.

A job is kept from when its work was done (or it was canceled): an owner who commits late does not keep it longer. What
waits for its owner is no matter of this: where a kind has ``abandon_after``, a result is first used or abandoned.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.lifecycle.policy import UNSAID, Policy, Unsaid
from penstock.lifecycle.states import FINISHED, JobState


@dataclass(frozen=True, slots=True)
class Retention:
    """For how many seconds jobs are kept that ended well, and those that failed; None is for ever."""

    keep_for: float | None = None
    keep_failed_for: float | None = None


FOR_EVER = Retention()


def retention_of(policy: Policy, default: Retention) -> Retention:
    """What holds for a kind: what it says itself, else what the application says.

    >>> retention_of(Policy(keep_for="1d"), Retention(60.0, 600.0))
    Retention(keep_for=86400.0, keep_failed_for=86400.0)
    >>> retention_of(Policy(keep_failed_for=None), Retention(60.0, 600.0))
    Retention(keep_for=60.0, keep_failed_for=None)
    """
    keep_for = default.keep_for if isinstance(policy.keep_for, Unsaid) else policy.keep_for
    if not isinstance(policy.keep_failed_for, Unsaid):
        keep_failed_for = policy.keep_failed_for
    else:
        keep_failed_for = default.keep_failed_for if policy.keep_for is UNSAID else keep_for
    return Retention(keep_for, keep_failed_for)


def seconds_kept(policy: Policy, default: Retention) -> dict[JobState, float]:
    """After how many seconds jobs of a kind go, by the state they ended in; those that stay are left out."""
    retention = retention_of(policy, default)
    by_state: dict[JobState, float | None] = {state: retention.keep_for for state in JobState if state in FINISHED}
    by_state[JobState.FAILED] = retention.keep_failed_for
    if policy.abandon_after is not None:
        by_state[JobState.SUCCEEDED] = None
    return {state: seconds for state, seconds in by_state.items() if seconds is not None}
