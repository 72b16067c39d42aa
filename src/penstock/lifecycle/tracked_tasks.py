"""Jobs that another engine moves: what is heard of their tasks, in any order, and what follows for the job. Pure.

**A job ends when its set of open tasks is empty.** A task is in the set from the moment somebody is about to send it,
and whoever sends it is a task of the set itself, or holds it open by one of its own. So the set cannot be empty while
something is still to come.

What is heard comes late, twice, or in another order than it happened: the end of a task may be heard before its
beginning, by another process. So each task is a row that only moves forward, by (version, status). An id that is used
again (a retry, a replacement) has a higher version, and any status of that is newer than every status of the one
before. Of two that arrive, the larger is kept: whatever the order, the row is the same in the end
(:meth:`TaskSighting.merge`, and the statement that does the same in the database).

A task may name those that are to come after it: the next of its chain, the callback of its chord. They are in the set
as EXPECTED. When everything else is over, an expected task will not come any more: because what leads to it did not end
well, which ends the job; or for a reason that nobody can see, which is said at once and ends the job after a while.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import NamedTuple
from uuid import UUID

from penstock.lifecycle import outcomes
from penstock.lifecycle.celery_states import COMPLETED, effective_status
from penstock.lifecycle.decisions import Fail, Nothing, Succeed
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.payloads import JSON, encode
from penstock.lifecycle.states import ErrorType, KilledBy, Phase


class TaskStatus(IntEnum):
    """Where a task is; of two things that are heard of one version of it, the larger counts."""

    EXPECTED = 0
    """Another task named it: it is to come when that one is over."""
    PUBLISHING = 10
    """Somebody is about to send it."""
    SENT = 20
    """The broker has it; whether it still has it, nobody can say."""
    STARTED = 30
    """A worker runs it."""
    IGNORED = 40
    """It ended without a word of how (``raise Ignore()``)."""
    REVOKED = 50
    FAILED = 60
    SUCCEEDED = 70


FIRST_END = TaskStatus.IGNORED
"""From here on a task is over."""
BAD_ENDS = (TaskStatus.REVOKED, TaskStatus.FAILED)
RETRIES_IN_VERSION = 100_000
"""A version counts replacements, and retries within one of them."""


def version_of(replacements: int, retries: int) -> int:
    """The version of a task's id that was used so often.

    >>> version_of(0, 3) < version_of(1, 0)
    True
    """
    return min(max(replacements, 0), 20_000) * RETRIES_IN_VERSION + min(max(retries, 0), RETRIES_IN_VERSION - 1)


class FailurePolicy(StrEnum):
    """What becomes of a job when everything is over and some of its parts, which nothing waited for, failed."""

    COUNT = "count"
    """It succeeds, and says how many failed."""
    FAIL = "fail"
    """It fails as the first of them did."""


@dataclass(frozen=True, slots=True)
class TaskSighting:
    """What is heard of one task of a job."""

    job_id: UUID
    task_id: str
    status: TaskStatus
    version: int = 0
    name: str | None = None
    leads_to: str | None = None
    """The task that comes after it."""
    is_root: bool = False
    is_awaited: bool = False
    """Was it expected: is it a callback, or a further step of a chain?"""
    is_counted: bool = True
    """Is it work, and not a task by which the engine helps itself?"""
    acks_late: bool = False
    worker: str | None = None
    error: str | None = None
    error_code: str | None = None
    error_class: str | None = None
    killed_by: KilledBy | None = None
    result: str | None = None
    """As JSON text."""

    def __post_init__(self) -> None:
        if self.status is TaskStatus.EXPECTED:
            object.__setattr__(self, "is_awaited", True)

    @property
    def rank(self) -> tuple[int, int]:
        """By what the newer of two is told."""
        return self.version, self.status

    def merge(self, other: TaskSighting) -> TaskSighting:
        """What is known after both were heard, whichever came first."""
        newer, older = (self, other) if self.rank >= other.rank else (other, self)
        return replace(
            newer,
            name=newer.name or older.name,
            leads_to=newer.leads_to or older.leads_to,
            worker=newer.worker or older.worker,
            is_root=newer.is_root or older.is_root,
            is_awaited=newer.is_awaited or older.is_awaited,
            is_counted=newer.is_counted and older.is_counted,
            acks_late=newer.acks_late or older.acks_late,
        )


class TaskCount(NamedTuple):
    """How many tasks of a job are alike."""

    status: int
    is_root: bool
    is_awaited: bool
    is_counted: bool
    tasks: int


class DecidingTask(NamedTuple):
    """A task that decides how its job ends: the root, one that was awaited, or one that others wait for."""

    task_id: str
    name: str | None
    status: int
    leads_to: str | None
    is_root: bool
    is_awaited: bool
    error: str | None
    error_code: str | None
    error_class: str | None
    killed_by: str | None
    result: JSON


@dataclass(frozen=True, slots=True)
class TaskTally:
    """The tasks of one job in figures."""

    total: int
    """Tasks that are work, those to come included."""
    processed: int
    failed: int
    skipped: int
    open: int
    """Tasks that are on their way or run, helpers included."""
    waiting: int
    """Those of them that no worker has begun, as far as anybody has heard."""
    expected: int
    has_begun: bool
    """Has any of them started?"""
    phase: Phase

    @classmethod
    def of(cls, counts: Iterable[TaskCount]) -> TaskTally:
        """Add up."""
        total = processed = failed = skipped = still_open = waiting = expected = open_callbacks = 0
        has_begun = root_open = False
        for status, is_root, is_awaited, is_counted, tasks in counts:
            is_over = status >= FIRST_END
            has_begun = has_begun or status >= TaskStatus.STARTED
            if is_counted:
                total += tasks
                processed += tasks * is_over
                failed += tasks * (status in BAD_ENDS)
                skipped += tasks * (status == TaskStatus.IGNORED)
            if status == TaskStatus.EXPECTED:
                expected += tasks
            elif not is_over:
                still_open += tasks
                waiting += tasks * (status < TaskStatus.STARTED)
                open_callbacks += tasks * is_awaited
                root_open = root_open or is_root
        phase = Phase.PROCESSING
        if not has_begun:
            phase = Phase.INIT
        elif root_open:
            phase = Phase.BATCHING
        elif still_open and open_callbacks == still_open and not expected:
            phase = Phase.FINALIZING
        return cls(total, processed, failed, skipped, still_open, waiting, expected, has_begun, phase)


@dataclass(frozen=True, slots=True)
class Missing:
    """Nothing can be heard of what is still to come: what that means is said as it is."""

    message: str


def next_step_of_tasks(
    tally: TaskTally,
    deciding: Sequence[DecidingTask],
    first_failure: DecidingTask | None,
    policy: FailurePolicy,
    *,
    is_overdue: bool,
) -> Nothing | Missing | Succeed | Fail:
    """What a running job becomes, by its tasks; ``is_overdue`` when nothing was heard of it for long enough.

    ``deciding`` has them in the order in which they ended.
    """
    if tally.open:
        if not is_overdue or tally.waiting < tally.open:
            return Nothing()
        waiting = "1 task waits" if tally.waiting == 1 else f"{tally.waiting:,} tasks wait"
        return Missing(f"{waiting} in the broker, or {'is' if tally.waiting == 1 else 'are'} lost")
    broken_off = _first_bad(task for task in deciding if task.is_root or task.is_awaited)
    if tally.expected:
        expected_tasks = [task for task in deciding if task.status == TaskStatus.EXPECTED]
        unreachable, culprit = _unreachable(expected_tasks, deciding)
        lost = [task for task in expected_tasks if task.task_id not in unreachable]
        if not lost and culprit is not None:
            return Fail(_never_ran(expected_tasks, culprit), Phase.PROCESSING)
        if is_overdue:
            return Fail(outcomes.failed(_lost_text(lost or expected_tasks), "CALLBACK_LOST"), Phase.PROCESSING)
        return Missing(_lost_text(lost or expected_tasks))
    if broken_off is not None:
        return Fail(_outcome(broken_off), Phase.FINALIZING if broken_off.is_awaited else Phase.PROCESSING)
    if first_failure is not None and policy is FailurePolicy.FAIL:
        return Fail(_outcome(first_failure), Phase.PROCESSING)
    return Succeed(_result(deciding))


def _first_bad(tasks: Iterable[DecidingTask]) -> DecidingTask | None:
    return next((task for task in tasks if task.status in BAD_ENDS), None)


def _unreachable(
    expected_tasks: Collection[DecidingTask], deciding: Sequence[DecidingTask]
) -> tuple[set[str], DecidingTask | None]:
    """The expected tasks that cannot come, because what leads to them did not end well; and the first such end."""
    blocking_tasks = [task for task in deciding if FIRST_END <= task.status < TaskStatus.SUCCEEDED and task.leads_to]
    unreachable = {task.leads_to for task in blocking_tasks if task.leads_to is not None}
    next_of = {task.task_id: task.leads_to for task in expected_tasks}
    frontier = list(unreachable)
    while frontier:
        following = next_of.get(frontier.pop())
        if following is not None and following not in unreachable:
            unreachable.add(following)
            frontier.append(following)
    return unreachable, blocking_tasks[0] if blocking_tasks else None


def _never_ran(expected_tasks: Sequence[DecidingTask], culprit: DecidingTask) -> Outcome:
    reason = f"{_label(culprit)} {_ending(culprit)}" + (f": {culprit.error}" if culprit.error else "")
    text = f"{_names(expected_tasks)} never ran, because {reason}"
    return _outcome(culprit)._replace(error=outcomes.failed(text, "").error)


def _lost_text(expected_tasks: Sequence[DecidingTask]) -> str:
    return f"all other tasks have ended, but {_names(expected_tasks)} was not sent: it is lost, as far as can be seen"


def _outcome(task: DecidingTask) -> Outcome:
    """The failure of a job that ends as this task did."""
    code = task.error_code or ("TASK_REVOKED" if task.status == TaskStatus.REVOKED else "PROCESSING_ERROR")
    killed_by = None if task.killed_by is None else KilledBy(task.killed_by)
    text = task.error or f"{_label(task)} {_ending(task)}"
    outcome = outcomes.failed(text, code, error_type=ErrorType.TERMINAL, killed_by=killed_by)
    return outcome if task.error_class is None else outcome.of_class(task.error_class)


def _label(task: DecidingTask) -> str:
    return f"task {task.name or task.task_id}"


def _names(tasks: Sequence[DecidingTask]) -> str:
    names = list(dict.fromkeys(task.name or task.task_id for task in tasks))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _ending(task: DecidingTask) -> str:
    return {TaskStatus.REVOKED: "was revoked", TaskStatus.IGNORED: "was ignored"}.get(TaskStatus(task.status), "failed")


def _result(deciding: Sequence[DecidingTask]) -> str | None:
    """What came of the job: the answer of the last callback that leads no further, or of the root where there is none.

    An answer that says that the work has only been handed out, or goes on elsewhere, is not what came of it.
    """
    for task in (
        *(task for task in reversed(deciding) if task.is_awaited and task.leads_to is None),
        *(task for task in reversed(deciding) if task.is_root),
    ):
        if task.status == TaskStatus.SUCCEEDED and task.result is not None and not _is_handed_on(task.result):
            return encode(task.result, max_bytes=2**62, at="result")
    return None


def _is_handed_on(result: JSON) -> bool:
    status = result.get("status") if isinstance(result, dict) else None
    return status == "requeued" or effective_status("SUCCESS", result) != COMPLETED
