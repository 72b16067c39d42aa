"""Numbers with their nouns, as people say them."""

from __future__ import annotations


def pluralize(number: int, noun: str) -> str:
    """A number with its noun.

    >>> pluralize(1, "page"), pluralize(2_000, "word")
    ('1 page', '2,000 words')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
