"""How jobs of one kind are treated: retries, limits and expiry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one kind; every duration is in seconds, None means no limit."""

    retries: int = 3
    backoff: Backoff = _BACKOFF
    not_found_retries: int = 0
    timeout: float | None = None
    memory_limit: int | None = None
    runs_in: RunsIn | None = None
    concurrency: int | None = None
    reprocess: bool = False
    priority: int = 0
    queue_limit: int | None = None
    wait_limit: float | None = None
    run_limit: float | None = None
    abandon_after: float | None = None
    prune_result: bool = False

    def allowing(self, retries: int) -> Policy:
        """The same rules with the number of retries a job was promised when it was recorded."""
        return self if retries == self.retries else replace(self, retries=retries)

    @classmethod
    def of(
        cls,
        *,
        retries: int = 3,
        backoff: str | Backoff = "1s exponential up to 5m",
        not_found_retries: int = 0,
        timeout: Duration | None = None,
        memory_limit: str | int | None = None,
        runs_in: RunsIn | str | None = None,
        concurrency: int | None = None,
        reprocess: bool = False,
        priority: int = 0,
        queue_limit: int | None = None,
        wait_limit: Duration | None = None,
        run_limit: Duration | None = None,
        abandon_after: Duration | None = None,
        prune_result: bool = False,
    ) -> Policy:
        """Read a policy as people write it; wrong values are refused here, not when a job runs."""
        bounds.RETRIES.require_of_kind(retries)
        bounds.NOT_FOUND_RETRIES.require_of_kind(not_found_retries)
        bounds.CONCURRENCY.require_of_kind(concurrency)
        bounds.QUEUE_LIMIT.require_of_kind(queue_limit)
        bounds.PRIORITY.require_of_kind(priority)
        place = None if runs_in is None else _place(runs_in)
        if memory_limit is not None and place is not RunsIn.PROCESSES:
            raise ConfigurationError("memory_limit needs runs_in='processes': only a process can be limited for real")
        return cls(
            retries=retries,
            backoff=Backoff.of(backoff),
            not_found_retries=not_found_retries,
            timeout=None if timeout is None else seconds(timeout),
            memory_limit=None if memory_limit is None else size_in_bytes(memory_limit),
            runs_in=place,
            concurrency=concurrency,
            reprocess=reprocess,
            priority=priority,
            queue_limit=queue_limit,
            wait_limit=None if wait_limit is None else seconds(wait_limit),
            run_limit=None if run_limit is None else seconds(run_limit),
            abandon_after=None if abandon_after is None else seconds(abandon_after),
            prune_result=prune_result,
        )


def _place(runs_in: RunsIn | str) -> RunsIn:
    try:
        return RunsIn(runs_in)
    except ValueError:
        raise ConfigurationError(f"runs_in is {runs_in!r}; it must be one of {', '.join(RunsIn)}") from None
