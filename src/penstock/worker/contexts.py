"""What a handler is given: the item it works on, or the job it plans or finalizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from penstock.errors import Stopped
from penstock.lifecycle.files import path_of
from penstock.lifecycle.job import Claimed, Item, Progress
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ItemStatus
from penstock.runners.contract import StopFlag


class WorkItem(NamedTuple):
    """One unit of work, as ``process`` sees it.

    ``input`` is what was planned or submitted for it (a single-step job's is its params), ``attempt`` counts from 1.
    """

    id: int
    job_id: UUID
    kind: str
    owner: str | None
    position: int
    attempt: int
    last_attempt: bool
    run: int
    input: JSON
    params: JSON
    files_directory: Path
    stop: StopFlag

    @property
    def stopped(self) -> bool:
        """Was the job stopped? A handler in a thread looks at this now and then; others are stopped for real."""
        return self.stop.set

    def kept_file(self, digest: str) -> Path:
        """Where the bytes of a kept file are; the handler may run in a process that has no database."""
        return path_of(self.files_directory, digest)

    def check(self) -> None:
        """Raise if the job was stopped: ``item.check()`` inside a long loop is all a thread's handler needs."""
        if self.stopped:
            raise Stopped(f"job {self.job_id} was stopped")


def work_item(claimed: Claimed, stop: StopFlag, files_directory: Path) -> WorkItem:
    """The handler's view of a claimed item."""
    item_id, job_id, kind, owner, run, _, position, attempt, retries, given, params, _ = claimed
    return WorkItem(
        item_id, job_id, kind, owner, position, attempt, attempt > retries, run, given, params, files_directory, stop
    )


@dataclass(frozen=True, slots=True)
class WorkJob:
    """A whole job, as ``plan`` and ``finalize`` see it."""

    id: UUID
    kind: str
    owner: str | None
    run: int
    attempt: int
    params: JSON
    progress: Progress
    planned: int
    """Items already persisted by an earlier try of the plan."""
    _say: Callable[[str], None]
    _items: Callable[[ItemStatus | None], Iterator[Item]]
    stop: StopFlag

    def say(self, message: str) -> None:
        """Tell the people who watch what is going on."""
        self._say(message)

    def items(self, status: ItemStatus | None = None) -> Iterator[Item]:
        """All items in order, read from the store as they are asked for."""
        return self._items(status)

    def results(self) -> Iterator[JSON]:
        """The results of the items that are DONE, in order; ``sum(job.results())`` reads them page by page."""
        return (item.result for item in self._items(ItemStatus.DONE))

    def check(self) -> None:
        """Raise if the job was stopped."""
        if self.stop.set:
            raise Stopped(f"job {self.id} was stopped")
