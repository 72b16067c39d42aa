"""What is heard of tasks, in any order, and what follows for the job: without a database and without Celery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from penstock.lifecycle.decisions import Fail, Nothing, Succeed
from penstock.lifecycle.states import Phase
from penstock.lifecycle.tracked_tasks import (
    BAD_ENDS,
    FIRST_END,
    DecidingTask,
    FailurePolicy,
    Missing,
    TaskCount,
    TaskSighting,
    TaskStatus,
    TaskTally,
    next_step_of_tasks,
)

JOB = UUID(int=1)
S = TaskStatus
sightings = st.builds(
    TaskSighting,
    job_id=st.just(JOB),
    task_id=st.just("a"),
    status=st.sampled_from(S),
    version=st.integers(0, 3),
    name=st.just("tasks.a"),
    leads_to=st.sampled_from([None, "b"]),
    is_root=st.booleans(),
    is_awaited=st.booleans(),
    acks_late=st.booleans(),
)


@given(heard=st.lists(sightings, min_size=1, max_size=6), data=st.data())
def test_whatever_the_order_the_row_is_the_same(heard: Sequence[TaskSighting], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations([*heard, *data.draw(st.lists(st.sampled_from(heard)))]))
    assert reduce(TaskSighting.merge, shuffled) == reduce(TaskSighting.merge, heard)


def tally_of(tasks: Sequence[TaskSighting]) -> TaskTally:
    """As the database counts them."""
    alike = Counter((task.status, task.is_root, task.is_awaited, task.is_counted) for task in tasks)
    return TaskTally.of(TaskCount(*sort, count) for sort, count in alike.items())


def deciding(tasks: Sequence[TaskSighting]) -> list[DecidingTask]:
    """As the database finds them."""
    return [
        DecidingTask(
            task.task_id, task.name, task.status, task.leads_to, task.is_root, task.is_awaited, task.error,
            task.error_code, task.error_class, None, None,
        )
        for task in tasks
        if task.is_root or task.is_awaited or (task.leads_to and FIRST_END <= task.status < S.SUCCEEDED)
    ]  # fmt: skip


tables = st.lists(
    st.builds(
        TaskSighting,
        job_id=st.just(JOB),
        task_id=st.sampled_from("abcdef"),
        status=st.sampled_from(S),
        leads_to=st.sampled_from([None, *"abcdef"]),
        is_root=st.booleans(),
        is_awaited=st.booleans(),
        is_counted=st.booleans(),
    ),
    max_size=6,
    unique_by=lambda task: task.task_id,
)


@given(tasks=tables, policy=st.sampled_from(FailurePolicy), is_overdue=st.booleans())
def test_no_table_with_an_open_task_is_a_success(
    tasks: Sequence[TaskSighting], policy: FailurePolicy, is_overdue: bool
) -> None:
    failed = [row for row in deciding(tasks) if row.status in BAD_ENDS]
    step = next_step_of_tasks(
        tally_of(tasks), deciding(tasks), failed[0] if failed else None, policy, is_overdue=is_overdue
    )
    is_open = any(task.status < FIRST_END for task in tasks)
    is_sent = any(S.EXPECTED < task.status < FIRST_END for task in tasks)
    assert not (is_open and isinstance(step, Succeed))
    assert not (is_sent and isinstance(step, Fail)), "what is on its way may still change how it ends"
    assert is_open or isinstance(step, Succeed | Fail), "nothing is open: it is over"
    assert isinstance(step, Nothing | Missing | Succeed | Fail)
    if not is_open:
        broken = any(task.status in BAD_ENDS and (task.is_root or task.is_awaited) for task in tasks)
        assert isinstance(step, Fail) or not broken


def test_the_phases() -> None:
    root = TaskSighting(JOB, "root", S.PUBLISHING, is_root=True)
    assert tally_of([root]).phase is Phase.INIT
    started = TaskSighting(JOB, "root", S.STARTED, is_root=True)
    assert tally_of([started]).phase is Phase.BATCHING
    ended = TaskSighting(JOB, "root", S.SUCCEEDED, is_root=True)
    part, body = TaskSighting(JOB, "part", S.SENT), TaskSighting(JOB, "body", S.SENT, is_awaited=True)
    assert tally_of([ended, part]).phase is Phase.PROCESSING
    assert tally_of([ended, body]).phase is Phase.FINALIZING
    assert tally_of([ended, part, body]).phase is Phase.PROCESSING
