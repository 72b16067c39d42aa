"""What a message says of the tasks that come after it: the callback of its chord, the further steps of its chain.

Celery puts both beside the arguments (``body[2]``), as signatures whose ids are decided already. A chain is there in
reverse: its last entry is the next step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from penstock.lifecycle.tracked_tasks import version_of

_MAX_TASKS = 200
"""So many tasks to come are named for one message: the last step of a chain may be a group of thousands."""
_DEEPEST = 20


class ComingTask(NamedTuple):
    """A task that is to come after another."""

    task_id: str
    name: str | None
    version: int
    leads_to: str | None = None


def coming_tasks(body: object) -> list[ComingTask]:
    """The tasks that are to come after the message with this body, the next one first."""
    embed = body[2] if isinstance(body, (tuple, list)) and len(body) > 2 else None
    if not isinstance(embed, Mapping):
        return []
    callback = next(_ends(embed.get("chord")), None)
    steps = [list(islice(_ends(step), _MAX_TASKS)) for step in reversed(embed.get("chain") or ())]
    steps = [step for step in steps if step]
    following = [*(step[0].task_id for step in steps[1:]), None if callback is None else callback.task_id]
    coming = [task._replace(leads_to=after) for step, after in zip(steps, following, strict=False) for task in step]
    if callback is not None:
        coming.append(callback._replace(leads_to=_chord_of(embed.get("chord"))))
    return coming[:_MAX_TASKS]


def _ends(signature: object, depth: int = 0) -> Iterator[ComingTask]:
    """The task that ends a signature: itself, the callback of a chord, the last of a chain, all of a group."""
    if not isinstance(signature, Mapping) or depth > _DEEPEST:
        return
    kwargs = signature.get("kwargs")
    inner: Mapping[str, Any] = kwargs if isinstance(kwargs, Mapping) else {}
    match signature.get("task"):
        case "celery.chord":
            yield from _ends(inner.get("body"), depth + 1)
        case "celery.chain":
            tasks = inner.get("tasks") or ()
            yield from _ends(tasks[-1] if tasks else None, depth + 1)
        case "celery.group":
            for member in inner.get("tasks") or ():
                yield from _ends(member, depth + 1)
        case name:
            options = signature.get("options")
            task_id = options.get("task_id") if isinstance(options, Mapping) else None
            if isinstance(task_id, str) and isinstance(options, Mapping):
                version = version_of(_number(options, "replaced_task_nesting"), _number(options, "retries"))
                yield ComingTask(task_id, name if isinstance(name, str) else None, version)


def _chord_of(signature: object) -> str | None:
    """The callback of the chord that a callback is itself a part of."""
    options = signature.get("options") if isinstance(signature, Mapping) else None
    outer = options.get("chord") if isinstance(options, Mapping) else None
    end = next(_ends(outer), None)
    return None if end is None else end.task_id


def _number(options: Mapping[str, Any], name: str) -> int:
    value = options.get(name)
    return value if isinstance(value, int) else 0
