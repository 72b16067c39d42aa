"""What follows from what happened: pure decisions, for an item's try, for a worker's death, and for a job.

The worker asks :func:`outcome_for_error` what an exception means; the sweep asks :func:`after_death` what becomes of
an item whose worker died; whoever records outcomes asks :func:`next_step` what the job does now. None of them knows a
database.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from penstock.errors import (
    ConfigurationError,
    HandlerError,
    InvalidInput,
    Killed,
    KindUnknown,
    NotFound,
    PenstockError,
    Permanent,
    Postponed,
    Retryable,
    Skip,
    StoreUnavailable,
    WorkerCrashed,
)
from penstock.lifecycle import outcomes
from penstock.lifecycle.error_text import cause_of, class_name, describe_error, text_of
from penstock.lifecycle.known_errors import known_code
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import ItemStatus, KilledBy, Phase

_SHORTEST_WAIT = 0.05
_LONGEST_WAIT = 86_400.0
_KILLERS = frozenset(killer.value for killer in KilledBy)


def outcome_for_error(
    error: BaseException,
    attempt: int,
    policy: Policy,
    *,
    not_found_attempts: int = 0,
    traceback: str | None = None,
    chance: random.Random | None = None,
) -> Outcome:
    """How the ``attempt``-th try of an item ends when its handler raised ``error``.

    So many of the tries before it ended in ``NotFound``. Those have a bound of their own, and what failed has not been
    looked for: neither kind of end uses up the tries of the other.

    >>> outcome_for_error(Permanent("no such page", code="GONE"), 1, Policy()).status
    <ItemStatus.ERROR: 'ERROR'>
    """
    outcome = _outcome_for_error(error, attempt, not_found_attempts, policy, traceback=traceback, chance=chance)
    return outcome.of_class(_error_class(error))


def _outcome_for_error(
    error: BaseException,
    attempt: int,
    not_found_attempts: int,
    policy: Policy,
    *,
    traceback: str | None,
    chance: random.Random | None,
) -> Outcome:
    match error:
        case Skip():
            return outcomes.skipped(_message(error), _code(error))
        case Postponed():
            return outcomes.postponed(_message(error), _code(error), _within(_retry_after(error) or 0.0))
        case NotFound():
            if not_found_attempts < policy.not_found_retries:
                delay = policy.backoff.delay(not_found_attempts + 1, None, chance)
                return outcomes.not_found_yet(_message(error), _code(error), delay)
            return outcomes.not_found(_message(error), _code(error))
        case Permanent():
            return outcomes.failed(_message(error), _code(error), killed_by=_killer(error), traceback=traceback)
        case InvalidInput() | ConfigurationError() | KindUnknown():
            return outcomes.failed(_message(error), _code(error), traceback=traceback)
        case Retryable():
            text, code, wait = _message(error), _code(error), _retry_after(error)
        case Killed() | StoreUnavailable():
            text, code, wait = _message(error), _code(error), None
        case _:
            text, code, wait = describe_error(error), known_code(error) or "PROCESSING_ERROR", None
    return retry_or_fail(
        text,
        code,
        attempt - not_found_attempts,
        policy,
        killed_by=_killer(error),
        retry_after=wait,
        traceback=traceback,
        chance=chance,
    )


def _error_class(error: BaseException) -> str:
    """The name of its class; of a verdict like ``Retryable``, that of the error which led to it."""
    cause = cause_of(error) if isinstance(error, HandlerError) else None
    return class_name(error if cause is None else cause)


def _message(error: PenstockError) -> str:
    """Its message; a class derived from ours may have forgotten to set it, or to set it to a text."""
    return text_of(getattr(error, "message", error))


def _code(error: PenstockError) -> str:
    return text_of(error.code)


def _retry_after(error: Retryable | Postponed) -> float | None:
    """The wait it asks for, where that is a number."""
    wait: object = getattr(error, "retry_after", None)
    return float(wait) if isinstance(wait, int | float) else None


def _within(seconds: float) -> float:
    """A wait that somebody else has asked for: not at once, and not for ever."""
    return min(max(seconds, _SHORTEST_WAIT), _LONGEST_WAIT) if seconds == seconds else _SHORTEST_WAIT


def retry_or_fail(
    error: str,
    code: str,
    attempt: int,
    policy: Policy,
    *,
    killed_by: KilledBy | None = None,
    retry_after: float | None = None,
    traceback: str | None = None,
    chance: random.Random | None = None,
) -> Outcome:
    """Back in line while retries remain after the ``attempt``-th failure; an error when they are used up."""
    if attempt <= policy.retries:
        delay = policy.backoff.delay(attempt, retry_after, chance)
        return outcomes.retried(error, code, delay, killed_by=killed_by, traceback=traceback)
    return outcomes.failed(error, code, killed_by=killed_by, traceback=traceback)


def after_death(
    error: str,
    deaths: int,
    policy: Policy,
    *,
    alone: bool,
    suspect_deaths: int,
    chance: random.Random | None = None,
) -> Outcome:
    """What becomes of an item whose worker died; ``deaths`` counts this one.

    A machine that goes away is not the item's failure: it goes back, at once after the first death, later after each
    further one. Only a suspect that was all its worker had in hand, and that in two deaths, is blamed here. One that
    runs in a process of its own is blamed by its worker, which lives to see that process die.

    >>> after_death("worker w1 died", 1, Policy(), alone=False, suspect_deaths=5).delay
    0.0
    """
    if alone and deaths >= suspect_deaths + 2:
        outcome = outcomes.failed(error, "WORKER_CRASH", killed_by=KilledBy.WORKER_CRASH)
        return outcome._replace(worker_died=True).of_class(WorkerCrashed.__name__)
    return outcomes.orphaned(0.0 if deaths <= 1 else policy.backoff.delay(deaths - 1, None, chance))


def _killer(error: BaseException) -> KilledBy | None:
    """Who ended the handler: the error itself says, or the one a kind's classify turned into it."""
    for candidate in (error, cause_of(error)):
        if isinstance(candidate, Killed) and candidate.killed_by in _KILLERS:
            return KilledBy(candidate.killed_by)
    return None


@dataclass(frozen=True, slots=True)
class JobCounters:
    """What a job's row says once the outcomes are counted."""

    single_step: bool
    planned: bool
    has_finalizer: bool
    finalize_added: bool
    total: int
    processed: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """The job goes on as it is."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The single-step job waits out its backoff."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class AddFinalize:
    """The last item is in: add the one that finalizes."""


@dataclass(frozen=True, slots=True)
class Succeed:
    """All is done; ``result`` is the job's result as JSON text."""

    result: str | None


@dataclass(frozen=True, slots=True)
class Fail:
    """The job cannot finish."""

    outcome: Outcome
    phase: Phase


Next = Nothing | Retry | AddFinalize | Succeed | Fail


def next_step(
    ledger: JobCounters, *, plan: Outcome | None = None, single: Outcome | None = None, finalize: Outcome | None = None
) -> Next:
    """What a running job does now; the outcomes are those of its deciding items, where they have one."""
    if plan is not None and plan.is_over and plan.status is not ItemStatus.DONE:
        return Fail(plan, Phase.BATCHING if ledger.total else Phase.INIT)
    if finalize is not None and finalize.is_over:
        if finalize.status in (ItemStatus.DONE, ItemStatus.SKIPPED):
            return Succeed(finalize.result)
        return Fail(finalize, Phase.FINALIZING)
    if ledger.single_step:
        return _single_step(single)
    if not ledger.planned or ledger.processed < ledger.total or ledger.finalize_added:
        return Nothing()
    return AddFinalize() if ledger.has_finalizer else Succeed(None)


def _single_step(outcome: Outcome | None) -> Next:
    if outcome is None:
        return Nothing()
    if not outcome.is_over:
        return Retry(outcome) if outcome.counts else Nothing()
    if outcome.status in (ItemStatus.DONE, ItemStatus.SKIPPED):
        return Succeed(outcome.result)
    return Fail(outcome, Phase.PROCESSING)
