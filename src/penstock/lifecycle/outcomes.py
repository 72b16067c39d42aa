"""How one try of an item ended: every ending is a named constructor, and all go through one fenced update.

A status of PENDING means the item goes back and may be claimed again after ``delay`` seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.lifecycle.bounds import LONGEST_CLASS, LONGEST_CODE, LONGEST_MESSAGE, LONGEST_TRACEBACK
from penstock.lifecycle.payloads import storable_text
from penstock.lifecycle.states import ErrorType, ItemStatus, KilledBy


class Outcome(NamedTuple):
    """The end of one try, ready to be written."""

    status: ItemStatus
    result: str | None = None
    error: str | None = None
    code: str | None = None
    error_type: ErrorType | None = None
    error_class: str | None = None
    """The name of the class of what was raised."""
    killed_by: KilledBy | None = None
    traceback: str | None = None
    delay: float | None = None
    counts: bool = True
    """Does the try count as an attempt? Handing back unfinished work on purpose does not, nor does a death."""
    was_not_found: bool = False
    """Was what it looks for not there? Such tries have a bound of their own."""
    worker_died: bool = False
    """Did its worker die, or stop responding, while it held the item?"""
    exception: BaseException | None = None
    """What was raised, for failure hooks; it is not stored."""

    @property
    def is_over(self) -> bool:
        """Is the item's work over?"""
        return self.status is not ItemStatus.PENDING

    def of_class(self, name: str) -> Outcome:
        """The same, of an error of the class with this name."""
        return self._replace(error_class=_cut(name, LONGEST_CLASS))


def done(result: str | None) -> Outcome:
    """The handler answered; ``result`` is its answer as JSON text."""
    return Outcome(ItemStatus.DONE, result)


def failed(
    error: str,
    code: str,
    *,
    error_type: ErrorType = ErrorType.TERMINAL,
    killed_by: KilledBy | None = None,
    traceback: str | None = None,
) -> Outcome:
    """It will not be tried again; ``error_type`` says whether a new job might do better."""
    return Outcome(
        ItemStatus.ERROR,
        error=_cut(error, LONGEST_MESSAGE),
        code=_cut(code, LONGEST_CODE),
        error_type=error_type,
        killed_by=killed_by,
        traceback=_tail(traceback),
    )


def retried(
    error: str, code: str, delay: float, *, killed_by: KilledBy | None = None, traceback: str | None = None
) -> Outcome:
    """It goes back to be tried again after ``delay`` seconds."""
    return Outcome(
        ItemStatus.PENDING,
        error=_cut(error, LONGEST_MESSAGE),
        code=_cut(code, LONGEST_CODE),
        error_type=ErrorType.RETRYABLE,
        killed_by=killed_by,
        traceback=_tail(traceback),
        delay=delay,
    )


def postponed(error: str, code: str, delay: float) -> Outcome:
    """It was not tried, and goes back for ``delay`` seconds; that is no attempt."""
    return Outcome(
        ItemStatus.PENDING,
        error=_cut(error, LONGEST_MESSAGE),
        code=_cut(code, LONGEST_CODE),
        error_type=ErrorType.RETRYABLE,
        delay=delay,
        counts=False,
    )


def not_found(error: str, code: str) -> Outcome:
    """What was looked for is not there."""
    return Outcome(
        ItemStatus.NOT_FOUND,
        error=_cut(error, LONGEST_MESSAGE),
        code=_cut(code, LONGEST_CODE),
        error_type=ErrorType.TERMINAL,
        was_not_found=True,
    )


def not_found_yet(error: str, code: str, delay: float) -> Outcome:
    """What was looked for is not there, and is looked for again after ``delay`` seconds."""
    return retried(error, code, delay)._replace(was_not_found=True)


def skipped(error: str, code: str) -> Outcome:
    """There was nothing to do."""
    return Outcome(ItemStatus.SKIPPED, error=_cut(error, LONGEST_MESSAGE), code=_cut(code, LONGEST_CODE))


def released() -> Outcome:
    """The worker hands the item back unfinished: it stops, or the job was stopped."""
    return Outcome(ItemStatus.PENDING, delay=0.0, counts=False)


def orphaned(delay: float) -> Outcome:
    """Its worker died while it held the item: back to the queue after ``delay`` seconds, and no try is used up."""
    return Outcome(ItemStatus.PENDING, delay=delay, counts=False, worker_died=True)


def _cut(text: str, max_length: int) -> str:
    short = storable_text(text[:max_length])
    return short if len(text) <= max_length else short[:-1] + "…"


def _tail(text: str | None) -> str | None:
    if text is None:
        return None
    end = storable_text(text[-LONGEST_TRACEBACK:])
    return end if len(text) <= LONGEST_TRACEBACK else "…" + end
