"""Turning what a handler returned or raised into an outcome."""

from __future__ import annotations

import traceback as tracebacks

from penstock.errors import HandlerError, InvalidInput, Stopped
from penstock.lifecycle import outcomes
from penstock.lifecycle.decisions import judge
from penstock.lifecycle.job import Claimed
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import JSON, encode


def returned(kind: Kind, claimed: Claimed, value: JSON, most: int) -> Outcome:
    """The handler answered; at most so many bytes of it are kept."""
    if value is None:
        return outcomes.done(None)
    try:
        return outcomes.done(encode(value, most=most, what="result"))
    except InvalidInput as error:
        return judge(error, claimed.attempt, kind.policy)


def raised(kind: Kind, claimed: Claimed, error: BaseException) -> Outcome:
    """The handler raised; the kind may know better what that means."""
    if isinstance(error, Stopped):
        return outcomes.released()
    text = _text(error)
    if kind.classify is not None:
        try:
            classified = kind.classify(error)
        except Exception as broken:  # noqa: BLE001 - a classify that fails must not hide what it was asked about
            text = f"{text}\nand the kind's classify failed:\n{_text(broken)}"
        else:
            if classified is not error and classified.__cause__ is None:
                classified.__cause__ = error
            error = classified
    return judge(error, claimed.attempt, kind.policy.allowing(claimed.max_retries), traceback=text)


def _text(error: BaseException) -> str | None:
    """The traceback, where there is one worth keeping: a handler that says how it ends needs none."""
    if isinstance(error, HandlerError) and error.__cause__ is None:
        return None
    return "".join(tracebacks.format_exception(error))
