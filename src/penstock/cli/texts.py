"""Values as short texts for a person: times, ages, payloads. Control characters in them never reach the terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime

ELLIPSIS = "…"


def on_one_line(text: str, max_length: int | None = None) -> str:
    """``text`` without line breaks and control characters, at most ``max_length`` characters of it.

    >>> on_one_line("red \\x1b[31m alert\\nsecond line", 20)
    'red ·[31m alert sec…'
    """
    line = "".join(character if character.isprintable() else "·" for character in " ".join(text.split()))
    return line if max_length is None or len(line) <= max_length else line[: max_length - 1] + ELLIPSIS


def for_terminal(text: str) -> str:
    """``text`` with its lines, but without anything that would steer a terminal."""
    return "".join(character if character.isprintable() or character in "\n\t" else "·" for character in text)


def payload(value: object, max_length: int | None = None) -> str:
    """JSON on one line."""
    if value is None:
        return ""
    return on_one_line(json.dumps(value, ensure_ascii=False, default=str), max_length)


def duration(seconds: float) -> str:
    """How long something took.

    >>> duration(0.25), duration(75), duration(7300), duration(200000)
    ('0.2 s', '1 m 15 s', '2 h 1 m', '2 d 7 h')
    """
    if seconds < 60:
        return f"{max(seconds, 0.0):.1f} s"
    whole = int(seconds)
    for long, short, size in (("m", "s", 60), ("h", "m", 3600), ("d", "h", 86400)):
        if whole < size * (60 if size < 3600 else 24) or long == "d":
            small = {"s": 1, "m": 60, "h": 3600}[short]
            return f"{whole // size} {long} {whole % size // small} {short}"
    raise AssertionError("unreachable: the last unit has no end")


def age(moment: datetime) -> str:
    """How long ago a moment was, roughly."""
    seconds = max((datetime.now(UTC) - moment).total_seconds(), 0.0)
    for name, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {name}"
    return f"{int(seconds)} s"


def moment(value: datetime | None) -> str:
    """A point in time as the history shows it."""
    return (
        ""
        if value is None
        else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    )


def count_of(count: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count_of(1, "job"), count_of(2000, "item")
    ('1 job', '2,000 items')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
