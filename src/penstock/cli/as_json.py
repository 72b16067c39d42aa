"""Jobs, items and history as JSON for programs: the fields of the Python objects, under the same names.

It is JSON on every terminal: where that does not take UTF-8, what is not ASCII is written by its escapes.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock import Job

_PAYLOADS = ("params", "result")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def text(value: object, *, indent: bool = False) -> str:
    """Any of Penstock's values as JSON text."""
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else 0).decode()


def print_one(value: object) -> None:
    """One object, for eyes and programs."""
    print(_for_terminal(text(value, indent=True)))


def print_lines(values: Iterable[object]) -> None:
    """One object on each line."""
    for value in values:
        print(_for_terminal(text(value)))


def _for_terminal(json_text: str) -> str:
    return json_text if _takes_utf8(sys.stdout.encoding) else _NOT_ASCII.sub(_escape, json_text)


def _takes_utf8(encoding: str | None) -> bool:
    """Is it UTF-8, by whichever of its names?

    >>> _takes_utf8("UTF8"), _takes_utf8("latin-1")
    (True, False)
    """
    return encoding is None or codecs.lookup(encoding).name == "utf-8"


def _escape(character: re.Match[str]) -> str:
    r"""A character as JSON escapes it: in UTF-16, so that a face takes two.

    >>> _NOT_ASCII.sub(_escape, "é😀")
    '\\u00e9\\ud83d\\ude00'
    """
    units = character[0].encode("utf-16-be")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


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
