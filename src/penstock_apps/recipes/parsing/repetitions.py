"""Lists that a page's marks say twice: once for each of two layouts, say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Value = TypeVar("Value")
_LEAST_LINES = 3
_LEAST_CHARACTERS = 200
"""So much is not said again word for word by a cook; shorter steps are: knead, rest, knead, rest."""


def said_once(lines: Sequence[Value]) -> list[Value]:
    """A list of ingredients without its repetition, as a whole or line by line.

    >>> said_once(["a", "b", "c", "a", "b", "c"]), said_once(["a", "a", "b", "b", "c", "c"]), said_once(["a", "b", "a"])
    (['a', 'b', 'c'], ['a', 'b', 'c'], ['a', 'b', 'a'])
    """
    values = list(lines)
    count = _times(values)
    if count > 1 and len(values) // count >= _LEAST_LINES:
        return values[: len(values) // count]
    pairs = values[::2]
    return pairs if len(pairs) >= _LEAST_LINES and pairs == values[1::2] else values


def steps_said_once(steps: Sequence[Value]) -> list[Value]:
    """Steps without the repetition of all of them, where they are too long to be meant so."""
    values = list(steps)
    part = len(values) // _times(values)
    is_long = part > 1 and sum(len(str(step)) for step in values[:part]) >= _LEAST_CHARACTERS
    return values[:part] if is_long else values


def _times(values: list[Value]) -> int:
    """How often a list says the same, one after the other."""
    for count in (4, 3, 2):
        part, rest = divmod(len(values), count)
        if part and not rest and values == values[:part] * count:
            return count
    return 1
