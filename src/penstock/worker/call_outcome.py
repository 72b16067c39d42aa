"""Turning what a handler returned or raised into an outcome.

Here the worker meets whatever somebody's code made: values that are not JSON, exceptions that cannot be printed, a
``classify`` that answers nothing. :func:`outcome_of_call` is the only way from there to an outcome, and it never
raises: what cannot be read in the usual way ends as an outcome made of nothing but our own words.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from penstock.errors import HandlerError, InvalidInput, Killed, Stopped
from penstock.lifecycle import outcomes
from penstock.lifecycle.decisions import outcome_for_error, retry_or_fail
from penstock.lifecycle.error_text import cause_of, class_name, traceback_of
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import JSON, encode
from penstock.lifecycle.policy import Policy
from penstock.runners.contract import Call, Unread

LOST = "CALL_LOST"
UNREADABLE = "OUTCOME_UNREADABLE"


def outcome_of_call(
    kind: Kind,
    call: Call,
    value: JSON,
    error: BaseException | None,
    max_bytes: int,
    *,
    apart: Callable[[Call, BaseException], Outcome | None] | None = None,
) -> Outcome:
    """How a try ended; at most ``max_bytes`` bytes of a result are kept.

    Of one that ran apart from the others, ``apart`` knows errors that say something about that.
    """
    item: ClaimedItem = call.owner
    try:
        if type(value) is Unread:
            value, error = value.read()
        if error is None:
            return outcome_of_value(kind, item, value, max_bytes)
        if isinstance(error, Stopped) and call.stop.set:
            return outcomes.released()
        outcome = None if apart is None else apart(call, error)
        return outcome or outcome_of_error(kind, item, error)
    except BaseException as reading_error:  # noqa: BLE001 - whatever is wrong with the answer, the item has an outcome
        return _unreadable(kind, item, error, reading_error)


def outcome_of_value(kind: Kind, item: ClaimedItem, value: JSON, max_bytes: int) -> Outcome:
    """The handler answered; at most so many bytes of it are kept."""
    if value is None:
        return outcomes.done(None)
    try:
        return outcomes.done(encode(value, max_bytes=max_bytes, at="result"))
    except InvalidInput as error:
        return _after_error(kind.policy, item, error)


def outcome_of_error(kind: Kind, item: ClaimedItem, error: BaseException) -> Outcome:
    """The handler raised; the kind's ``classify`` may say what that means."""
    text = _text(error)
    if kind.classify is not None:
        try:
            verdict: object = kind.classify(error)
        except BaseException as classify_error:  # noqa: BLE001 - a classify that fails must not hide what it was asked about
            text = f"{text or ''}\nand the kind's classify failed:\n{traceback_of(classify_error)}"
        else:
            if isinstance(verdict, BaseException):
                error = _with_cause(verdict, error)
            else:
                answer = class_name(verdict)
                text = f"{text or ''}\nand the kind's classify answered with {answer}, which is no exception"
    outcome = _after_error(kind.policy.allowing(item.max_retries), item, error, traceback=text)
    return outcome._replace(exception=error)


def outcome_of_slow_reading(kind: Kind, item: ClaimedItem, error: BaseException | None, seconds: float) -> Outcome:
    """Reading the answer takes too long (a ``classify`` that hangs): decided without it."""
    policy = kind.policy.allowing(item.max_retries)
    if type(error).__module__ == Killed.__module__ and isinstance(error, Killed):
        return _after_error(policy, item, error)  # one of ours, with a message of ours
    what = "the handler's result" if error is None else class_name(error)
    text = f"{what}: what it means was not decided within {seconds:g} s; does the kind's classify hang?"
    return retry_or_fail(text, UNREADABLE, item.failed_attempt, policy).of_class(class_name(error))


def outcome_of_lost_call(kind: Kind, item: ClaimedItem) -> Outcome:
    """No runner knows of the call any more: a defect of ours, and whether the handler ran is unknown."""
    text = "the worker lost sight of this call, and nobody knows how far it came"
    return retry_or_fail(text, LOST, item.failed_attempt, kind.policy.allowing(item.max_retries))


def _unreadable(kind: Kind, item: ClaimedItem, error: BaseException | None, reading_error: BaseException) -> Outcome:
    """An outcome that the handler's objects cannot influence."""
    reason = f"reading it ends in {class_name(reading_error)}"
    if error is None:
        return outcomes.failed(f"the result cannot be kept as JSON: {reason}", "PAYLOAD_NOT_STORABLE")
    text = f"{class_name(error)}, which cannot be read: {reason}"
    policy = kind.policy.allowing(item.max_retries)
    return retry_or_fail(text, UNREADABLE, item.failed_attempt, policy).of_class(class_name(error))


def _after_error(policy: Policy, item: ClaimedItem, error: BaseException, *, traceback: str | None = None) -> Outcome:
    return outcome_for_error(
        error, item.attempt, policy, not_found_attempts=item.not_found_attempts, traceback=traceback
    )


def _with_cause(verdict: BaseException, error: BaseException) -> BaseException:
    """What a classify made of an error, with that error as its cause."""
    if verdict is not error and cause_of(verdict) is None:
        with contextlib.suppress(BaseException):
            verdict.__cause__ = error
    return verdict


def _text(error: BaseException) -> str | None:
    """The traceback, where there is one worth keeping: a handler that says how it ends needs none."""
    if isinstance(error, HandlerError) and cause_of(error) is None:
        return None
    return traceback_of(error)
