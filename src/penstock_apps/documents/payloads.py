"""What document jobs hold: their params, and their result."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from penstock_apps.documents.reading.findings import Page


class DocumentParams(TypedDict):
    """What a job is submitted with; it has one step, so its item holds the same."""

    sha256: str
    name: str
    media_type: str | None
    max_bytes: int


class DocumentResult(TypedDict):
    """Text and facts of a document."""

    document_type: str
    media_type: str
    size_bytes: int
    sha256: str
    encoding: str | None
    title: str | None
    author: str | None
    description: str | None
    created: str | None
    modified: str | None
    language: str | None
    page_count: int | None
    page_count_source: str | None
    word_count: int
    character_count: int
    pages: list[Page]
    text: str
    truncated: bool
    warnings: list[str]
