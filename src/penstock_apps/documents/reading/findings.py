"""What reading one document found, the same for every type."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NotRequired, TypedDict

from penstock_apps.documents.reading.collected_text import clean_line


class Page(TypedDict):
    """One page as the result shows it; sizes in PDF points.

    The counts are null for pages past the text bound, and for those that could not be read, which have a ``problem``.
    """

    number: int
    characters: int | None
    words: int | None
    width: NotRequired[float | None]
    height: NotRequired[float | None]
    problem: NotRequired[str]


class PageCountSource(StrEnum):
    """How a page count is known."""

    COUNTED = "counted"
    DECLARED = "declared"
    """Written into the file by the program that saved it, and not checked."""


@dataclass(slots=True)
class Findings:
    """Text and facts of one document, filled in by the module of its type."""

    text: str = ""
    truncated: bool = False
    title: str | None = None
    author: str | None = None
    description: str | None = None
    created: str | None = None
    modified: str | None = None
    language: str | None = None
    encoding: str | None = None
    page_count: int | None = None
    page_count_source: PageCountSource | None = None
    pages: list[Page] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def fact(value: object) -> str | None:
    """A line of metadata, or None where there is nothing in it."""
    return (clean_line(str(value)) or None) if value is not None else None


def moment(value: str | None) -> str | None:
    """A time in ISO 8601, or None where it is not one."""
    try:
        return datetime.fromisoformat(value.strip()).isoformat() if value is not None else None
    except ValueError:
        return None
