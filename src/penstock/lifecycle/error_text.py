"""What an exception says of itself, read so that nothing in it can harm the reader.

An exception is somebody else's object: its ``__str__`` may raise, answer no text or 100 MB of it, its class may lie
about its name, its ``__cause__`` may be a property. Everything here answers a plain text of bounded length.
"""

from __future__ import annotations

import traceback as tracebacks
from types import TracebackType
from typing import Any

UNREADABLE = "(its message cannot be read)"
_LONGEST_NAME = 100
_LONGEST_TEXT = 20_000
_LONGEST_SHOWN = 2_000
_NAME_OF: Any = type.__dict__["__name__"].__get__
_CAUSE_OF: Any = BaseException.__dict__["__cause__"].__get__
_TRACEBACK_OF: Any = BaseException.__dict__["__traceback__"].__get__


def class_name(value: object) -> str:
    """The name of its class, from the class itself: a metaclass is not asked.

    >>> class_name(ValueError("no"))
    'ValueError'
    """
    return plain(_NAME_OF(type(value)), _LONGEST_NAME)


def text_of(value: object) -> str:
    """``str(value)`` where that works.

    >>> class Mute(Exception):
    ...     def __str__(self):
    ...         return None
    >>> text_of(Mute()), text_of(ValueError("no"))
    ('(its message cannot be read)', 'no')
    """
    try:
        return plain(str(value), _LONGEST_TEXT)
    except BaseException:  # noqa: BLE001 - __str__ is anybody's code
        return UNREADABLE


def describe_error(error: BaseException) -> str:
    """Class and message in one line.

    >>> describe_error(KeyError("price"))
    "KeyError: 'price'"
    """
    return f"{class_name(error)}: {text_of(error)}".rstrip(": ")


def cause_of(error: BaseException) -> BaseException | None:
    """Its ``__cause__``, whatever its class has made of that name."""
    cause: BaseException | None = _CAUSE_OF(error)
    return cause


def traceback_of(error: BaseException) -> str:
    """The traceback as Python prints it; only its frames where the exception cannot be printed, or says too much."""
    message = text_of(error)
    if len(message) < _LONGEST_TEXT:
        try:
            return "".join(tracebacks.format_exception(error))
        except BaseException:  # noqa: BLE001 - messages, notes, causes and groups are anybody's code
            message = UNREADABLE
    return f"{_frames_of(error)}{class_name(error)}: {plain(message, _LONGEST_SHOWN)}\n"


def plain(text: str, max_length: int) -> str:
    """At most so many characters, as a ``str`` and nothing derived from it."""
    return str.__getitem__(text, slice(max_length))


def _frames_of(error: BaseException) -> str:
    frames: TracebackType | None = _TRACEBACK_OF(error)
    try:
        return "".join(["Traceback (most recent call last):\n", *tracebacks.format_tb(frames)])
    except BaseException:  # noqa: BLE001 - a module's loader is asked for its source
        return ""
