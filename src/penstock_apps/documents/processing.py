"""The one step of a document job, run in a process of its own with a limit on time and memory."""

from __future__ import annotations

from typing import Any

from penstock import ItemContext, Permanent
from penstock.errors import MemoryLimitExceeded
from penstock_apps.documents.bounds import Bounds
from penstock_apps.documents.extraction import extract


def process(item: ItemContext) -> dict[str, Any]:
    """Text and facts of the document an item names."""
    given = item.input
    return extract(
        item.kept_file(given["sha256"]),
        declared_name=given["name"],
        declared_media_type=given.get("media_type"),
        bounds=Bounds(max_bytes=given["max_bytes"]),
    )


def classify(error: BaseException) -> BaseException:
    """Running out of memory is a limit exceeded, which no retry cures; everything else is judged as it is."""
    if isinstance(error, MemoryLimitExceeded):
        return Permanent(error.message, code="DOCUMENT_TOO_COMPLEX")
    return error
