"""What a handler is given: the item it works on, or the job it plans or finalizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from penstock.errors import Stopped
from penstock.lifecycle.files import path_of
from penstock.lifecycle.generic import Generic, Input, Params, Result
from penstock.lifecycle.job import ClaimedItem, Item, Progress
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ItemStatus
from penstock.runners.contract import StopFlag


class ItemContext(Generic[Params, Input]):
    """One unit of work, as ``process`` sees it.

    ``input`` is what was planned or submitted for it (a single-step job's is its params), ``attempt`` counts from 1.
    ``ItemContext[Params, Input]`` says what both hold, for the type checker.
    """

    __slots__ = ("_claimed_item", "files_directory", "stop")

    def __init__(self, claimed_item: ClaimedItem, files_directory: Path, stop: StopFlag) -> None:
        self._claimed_item = claimed_item
        self.files_directory = files_directory
        self.stop = stop

    @property
    def id(self) -> int:
        """The item's number in the store."""
        return self._claimed_item.item_id

    @property
    def job_id(self) -> UUID:
        """The job it belongs to."""
        return self._claimed_item.job_id

    @property
    def kind(self) -> str:
        """The kind of that job."""
        return self._claimed_item.kind

    @property
    def owner(self) -> str | None:
        """The job's owner; None when it has none."""
        return self._claimed_item.user_id

    @property
    def position(self) -> int:
        """Its place in the job, from 1."""
        return self._claimed_item.position

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self._claimed_item.attempt

    @property
    def last_attempt(self) -> bool:
        """Will there be no other try if this one fails?"""
        return self._claimed_item.failed_attempt > self._claimed_item.max_retries

    @property
    def times_not_found(self) -> int:
        """How often it was not found so far, in all runs: who looks another way each time counts by this."""
        return self._claimed_item.not_found_attempts + self._claimed_item.earlier_not_found

    @property
    def run(self) -> int:
        """Which run of the job this is, from 1."""
        return self._claimed_item.run

    @property
    def input(self) -> Input:
        """What to work on."""
        value: Input = self._claimed_item.input
        return value

    @property
    def normalized(self) -> JSON:
        """The input in canonical fields, where the plan said them."""
        return self._claimed_item.normalized

    @property
    def params(self) -> Params:
        """The job's params."""
        value: Params = self._claimed_item.params
        return value

    @property
    def stopped(self) -> bool:
        """Was the job stopped? A handler in a thread should check this now and then; others are interrupted."""
        return self.stop.set

    def kept_file(self, digest: str) -> Path:
        """Where the bytes of a kept file are; the handler may run in a process that has no database."""
        return path_of(self.files_directory, digest)

    def check(self) -> None:
        """Raise if the job was stopped: ``item.check()`` inside a long loop is all a thread's handler needs."""
        if self.stopped:
            raise Stopped(f"job {self.job_id} was stopped")

    def __repr__(self) -> str:
        return f"<ItemContext {self.position} of {self.kind} job {self.job_id}, attempt {self.attempt}>"


@dataclass(frozen=True, slots=True)
class JobContext(Generic[Params, Result]):
    """A whole job, as ``plan`` and ``finalize`` see it; ``JobContext[Params, Result]`` says what its params hold, and
    what each of its items comes to.
    """

    id: UUID
    kind: str
    owner: str | None
    run: int
    attempt: int
    params: Params
    progress: Progress
    planned: int
    """Items already persisted by an earlier try of the plan."""
    _say: Callable[[str], None]
    _items: Callable[[ItemStatus | None], Iterator[Item]]
    stop: StopFlag

    def say(self, message: str) -> None:
        """Set the message that people see while the job runs."""
        self._say(message)

    def items(self, status: ItemStatus | None = None) -> Iterator[Item]:
        """All items in order, read from the store as they are asked for."""
        return self._items(status)

    def results(self) -> Iterator[Result]:
        """The results of the items that are DONE, in order; ``sum(job.results())`` reads them page by page."""
        return (item.result for item in self._items(ItemStatus.DONE))

    def check(self) -> None:
        """Raise if the job was stopped."""
        if self.stop.set:
            raise Stopped(f"job {self.id} was stopped")
