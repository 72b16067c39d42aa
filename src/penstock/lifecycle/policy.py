"""How jobs of one kind are treated: retries, limits and expiry."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from enum import Enum, StrEnum
from typing import Any, TypedDict, Unpack

from penstock.errors import ConfigurationError
from penstock.lifecycle import bounds
from penstock.lifecycle.quantities import seconds, size_in_bytes
from penstock.lifecycle.retry import Backoff

Duration = str | float | timedelta


_BACKOFF = Backoff(1.0, 2.0, 300.0)


class RunsIn(StrEnum):
    """Where a kind's handlers run."""

    EVENT_LOOP = "event_loop"
    THREADS = "threads"
    PROCESSES = "processes"


class Unsaid(Enum):
    """A kind says nothing about it: the application does."""

    UNSAID = "unsaid"

    def __repr__(self) -> str:
        return "the application's"


UNSAID = Unsaid.UNSAID


class PolicyOptions(TypedDict, total=False):
    """The rules of a kind as people write them: arguments of ``app.kind`` and of :class:`Policy` alike."""

    retries: int
    """Further tries after the first that failed; 3 unless it is said."""
    backoff: str | Backoff
    """The wait between tries: ``1s fixed``, ``1s exponential up to 5m`` (the default), or a ``Backoff``."""
    not_found_retries: int
    """Further tries after ``NotFound``, for things that may still appear; none unless it is said."""
    timeout: Duration | None
    """The longest one call of the handler may take; a process is killed, a task canceled, a thread given up."""
    memory_limit: str | int | None
    """The most resident memory a call's process may take; needs ``runs_in="processes"``."""
    runs_in: RunsIn | str | None
    """``event_loop``, ``threads`` or ``processes``; without it async functions run on the loop and others in threads.
    """
    concurrency: int | None
    """Calls at the same time in one worker; without it 32 on the loop, 8 threads, one process a core."""
    slows_down: bool
    """Whether refusals and errors make the kind run fewer calls at once; not where each item asks another host."""
    reprocess: bool
    """Whether items of a finished job may run again in a new run."""
    priority: int
    """Jobs of the kind with a higher number go first, from -32768 to 32767; 0 unless it is said."""
    queue_limit: int | None
    """The most jobs of the kind that may wait; one more fails at once with ``QUEUE_OVERLOAD``."""
    hold_limit: Duration | None
    """The longest a job that was only created may wait to be submitted; then the system cancels it."""
    wait_limit: Duration | None
    """The longest a job may wait for a worker; then it fails with ``QUEUE_WAIT_EXCEEDED``."""
    run_limit: Duration | None
    """The longest a job may run; then it fails with ``JOB_TIMEOUT``."""
    abandon_after: Duration | None
    """How long a result waits to be committed before the job is abandoned."""
    prune_result: bool
    """Whether an abandoned job's result is deleted; only the sweep does so, not ``abandon()``."""
    keep_for: Duration | None
    """How long a job is kept after its work was done, with all that belongs to it; None is for ever. Unless it is said,
    PENSTOCK_KEEP_JOBS_FOR holds.
    """
    keep_failed_for: Duration | None
    """The same for jobs that failed; unless it is said, as long as the others of the kind."""


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """The rules of one kind; every duration is kept in seconds, None means no limit.

    It is made of :class:`PolicyOptions`; a wrong value is refused here, not when a job runs.

    >>> Policy(retries=1, backoff="1s fixed", timeout="5m").timeout
    300.0
    """

    retries: int = 3
    backoff: Backoff = _BACKOFF
    not_found_retries: int = 0
    timeout: float | None = None
    memory_limit: int | None = None
    runs_in: RunsIn | None = None
    concurrency: int | None = None
    slows_down: bool = True
    reprocess: bool = False
    priority: int = 0
    queue_limit: int | None = None
    hold_limit: float | None = None
    wait_limit: float | None = None
    run_limit: float | None = None
    abandon_after: float | None = None
    prune_result: bool = False
    keep_for: float | Unsaid | None = UNSAID
    keep_failed_for: float | Unsaid | None = UNSAID

    def __init__(self, **options: Unpack[PolicyOptions]) -> None:
        for name in options:
            if name not in _DEFAULTS:
                raise ConfigurationError(f"a kind has no option {name!r}; there are {', '.join(_DEFAULTS)}")
        values: dict[str, Any] = {**_DEFAULTS, **options}
        for bound in _BOUNDS:
            bound.require_of_kind(values[bound.field])
        values["backoff"] = Backoff.of(values["backoff"])
        values["runs_in"] = None if values["runs_in"] is None else _place(values["runs_in"])
        if values["memory_limit"] is not None:
            if values["runs_in"] is not RunsIn.PROCESSES:
                raise ConfigurationError(
                    "memory_limit needs runs_in='processes': only a process can be limited for real"
                )
            values["memory_limit"] = size_in_bytes(values["memory_limit"])
        for name in _DURATIONS:
            value = values[name]
            values[name] = value if value is None or isinstance(value, Unsaid) else seconds(value)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def allowing(self, retries: int) -> Policy:
        """The same rules with the number of retries a job was promised when it was recorded."""
        return self if retries == self.retries else replace(self, retries=retries)


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Policy)}
_DURATIONS = (
    "timeout", "hold_limit", "wait_limit", "run_limit", "abandon_after", "keep_for", "keep_failed_for",
)  # fmt: skip
_BOUNDS = (bounds.RETRIES, bounds.NOT_FOUND_RETRIES, bounds.CONCURRENCY, bounds.QUEUE_LIMIT, bounds.PRIORITY)


def _place(runs_in: RunsIn | str) -> RunsIn:
    try:
        return RunsIn(runs_in)
    except ValueError:
        raise ConfigurationError(f"runs_in is {runs_in!r}; it must be one of {', '.join(RunsIn)}") from None
