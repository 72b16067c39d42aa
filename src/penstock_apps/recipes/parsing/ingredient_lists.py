"""From the texts that a page has for its ingredients to one line for each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.texts import paragraphs, plain

_BETWEEN = re.compile(r"[,;•|]\s")
_LEAST_PARTS = 3
_LONGEST_WITH_BRACKETS = 2_000


def ingredient_lines(texts: Sequence[str]) -> list[str]:
    r"""A line for each ingredient; a text that has several of them is taken apart.

    >>> ingredient_lines(["1 cup flour\n2 eggs\nSalt"]), ingredient_lines(["100 g flour, 2 eggs, 1 tsp salt"])
    (['1 cup flour', '2 eggs', 'Salt'], ['100 g flour', '2 eggs', '1 tsp salt'])
    >>> ingredient_lines(["1 cup flour,\n  sifted", "2 eggs"])
    ['1 cup flour, sifted', '2 eggs']
    """
    result: list[str] = []
    for text in texts:
        several = paragraphs(text)
        if len(several) == 1 and len(texts) == 1:
            several = _apart(several[0])
        if len(texts) == 1 or _are_several(several):
            result += several
        elif line := plain(text):
            result.append(line)
    return [_without_double_brackets(line) for line in result]


def _without_double_brackets(line: str) -> str:
    """Programs put brackets around remarks, also around those that have them; brackets in brackets stay.

    >>> _without_double_brackets("milk ((cold))"), _without_double_brackets("kale ((56 g) torn up)")
    ('milk (cold)', 'kale ((56 g) torn up)')
    """
    start = line.find("((")
    if start < 0 or len(line) > _LONGEST_WITH_BRACKETS:
        return line
    depth = 0
    for place in range(start, len(line)):
        depth += (line[place] == "(") - (line[place] == ")")
        if not depth:
            is_double = line[place - 1] == ")"
            inside = line[start + 1 : place] if is_double else line[start : place + 1]
            return line[:start] + inside + _without_double_brackets(line[place + 1 :])
    return line


def _are_several(lines: Sequence[str]) -> bool:
    """Is a text among others a list itself? Then its lines have amounts; else its author's program has broken them."""
    return len(lines) > 1 and sum(_has_amount(line) for line in lines) > len(lines) / 2


def _apart(line: str) -> list[str]:
    """One line with everything in it, where each part of it has its amount."""
    parts = [part.strip() for part in _BETWEEN.split(line) if part.strip()]
    is_list = len(parts) >= _LEAST_PARTS and sum(_has_amount(part) for part in parts) > 0.8 * len(parts)
    return parts if is_list else [line]


def _has_amount(line: str) -> bool:
    return read_ingredient(line).quantity is not None
