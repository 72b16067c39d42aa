"""The document kind: each job reads a document, in a process with limits on time and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import ItemContext, Permanent
from penstock.errors import MemoryLimitExceeded
from penstock.lifecycle import JSON
from penstock_apps.documents.payloads import DocumentParams, DocumentResult
from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.extraction import extract
from penstock_apps.documents.vocabulary import DOCUMENTS
from penstock_apps.plurals import pluralize

if TYPE_CHECKING:
    from penstock_apps.documents.intake import DocumentIntake

DOCUMENT = "document"


def read_document(item: ItemContext[DocumentParams, DocumentParams]) -> DocumentResult:
    """Text and facts of the document an item names."""
    params = item.input
    return extract(
        item.kept_file(params["sha256"]),
        declared_name=params["name"],
        declared_media_type=params["media_type"],
        bounds=Bounds(max_bytes=params["max_bytes"]),
    )


def classify(error: BaseException) -> BaseException:
    """Running out of memory is a limit exceeded, which no retry cures; everything else is judged as it is."""
    if isinstance(error, MemoryLimitExceeded):
        return Permanent(error.message, code="DOCUMENT_TOO_COMPLEX")
    return error


def describe(result: JSON) -> str:
    """A document's result in a few words."""
    if not isinstance(result, dict):
        return ""
    pages = result.get("page_count")
    parts = (
        str(result.get("document_type", "")),
        pluralize(pages, "page") if isinstance(pages, int) else "",
        pluralize(int(result.get("word_count", 0)), "word"),
    )
    return ", ".join(part for part in parts if part)


class ReadDocument:
    """Reads one document."""

    process = staticmethod(read_document)
    classify = staticmethod(classify)
    describe = staticmethod(describe)
    words = DOCUMENTS

    def __init__(self, intake: DocumentIntake) -> None:
        self.intake = intake
