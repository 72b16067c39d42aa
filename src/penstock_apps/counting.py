"""Counted things, as people say them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "page"), counted(2_000, "word")
    ('1 page', '2,000 words')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
