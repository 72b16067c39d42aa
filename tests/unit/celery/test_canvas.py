"""What a message says of the tasks that come after it."""

from __future__ import annotations

import pytest

from penstock.celery.canvas import coming_tasks


def signature(task_id: str, **options: object) -> dict[str, object]:
    return {"task": f"tasks.{task_id}", "options": {"task_id": task_id, **options}, "kwargs": {}}


def test_what_a_message_says_of_those_after_it() -> None:
    chord = {"task": "celery.chord", "kwargs": {"header": [], "body": signature("body", chord=signature("outer"))}}
    group = {"task": "celery.group", "kwargs": {"tasks": [signature("x"), signature("y")]}}
    steps = coming_tasks(((), {}, {"chain": [group, chord, signature("next")], "chord": signature("last")}))
    assert [(task.task_id, task.leads_to) for task in steps] == [
        ("next", "body"), ("body", "x"), ("x", "last"), ("y", "last"), ("last", None),
    ]  # fmt: skip
    nested = coming_tasks(((), {}, {"chord": signature("inner", chord=signature("outer"))}))
    assert [(task.task_id, task.leads_to) for task in nested] == [("inner", "outer")]


@pytest.mark.parametrize(
    "body", [None, (), "text", ((), {}), ((), {}, None), ((), {}, {"chain": [None, 3, {}], "chord": "no"})]
)
def test_a_message_that_says_nothing_of_that(body: object) -> None:
    assert coming_tasks(body) == []
