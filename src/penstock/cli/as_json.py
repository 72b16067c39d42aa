"""Jobs, items and history as JSON for programs: the fields of the Python objects, under the same names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock import Job

_PAYLOADS = ("params", "result")


def text(value: object, *, indent: bool = False) -> str:
    """Any of Penstock's values as JSON text."""
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else 0).decode()


def print_one(value: object) -> None:
    """One object, for eyes and programs."""
    print(text(value, indent=True))


def print_lines(values: Iterable[object]) -> None:
    """One object on each line."""
    for value in values:
        print(text(value))


def job_object(job: Job, *, payloads: bool = True) -> dict[str, Any]:
    """A job's fields, with its progress from 0 to 1 beside the counts, and its times up to now."""
    from dataclasses import asdict
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    fields, times = asdict(job), job.times_at(now)
    fields["progress"]["fraction"] = job.fraction
    fields["times"] = asdict(times) | {"total": times.total}
    fields["seconds_left"] = job.seconds_left(now)
    if not payloads:
        for name in _PAYLOADS:
            del fields[name]
    return fields
