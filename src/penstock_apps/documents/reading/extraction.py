"""Reads one document of any of the types into a result that is ready to be stored as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from penstock_apps.documents.payloads import DocumentResult
from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.failures import DocumentFailure, classify
from penstock_apps.documents.reading.findings import Findings
from penstock_apps.documents.reading.sniffing import DocumentType, sniff

_DEFAULT_BOUNDS = Bounds()
_READERS = {
    DocumentType.PDF: ("penstock_apps.documents.reading.pdf", "read_pdf"),
    DocumentType.DOCX: ("penstock_apps.documents.reading.docx", "read_docx"),
    DocumentType.HTML: ("penstock_apps.documents.reading.html", "read_html"),
    DocumentType.TEXT: ("penstock_apps.documents.reading.plain_text", "read_plain_text"),
}


def extract(
    path: Path,
    *,
    declared_name: str,
    bounds: Bounds = _DEFAULT_BOUNDS,
    declared_media_type: str | None = None,
) -> DocumentResult:
    """Text and facts of the document stored at a path, which its sender called by ``declared_name``.

    Raises Permanent or Retryable with one of the codes of ``DocumentFailure``, or MemoryError, and nothing else.
    It is meant for a child process with a limit on time and memory: those two are not bounded here.
    """
    try:
        data = _load(path, bounds)
        kind = sniff(data, declared_name=declared_name, declared_media_type=declared_media_type, bounds=bounds)
        return _result(kind, data, _reader(kind)(data, bounds), bounds)
    except Exception as error:
        failure = classify(error)
        if failure is error:
            raise
        raise failure from error


def _load(path: Path, bounds: Bounds) -> bytes:
    """The whole file, read once, so that what is hashed, sniffed and parsed is the same."""
    with path.open("rb") as file:
        # One more than allowed, because the file may grow between a look at its size and the reading.
        data = file.read(bounds.max_bytes + 1)
        if len(data) > bounds.max_bytes:
            size = max(len(data), path.stat().st_size)
            raise DocumentFailure.TOO_LARGE.error(f"It has {size} bytes; at most {bounds.max_bytes}.")
    if not data:
        raise DocumentFailure.EMPTY.error("It has zero bytes.")
    return data


def _reader(kind: DocumentType) -> Callable[[bytes, Bounds], Findings]:
    """The function that reads the type, whose library is loaded only now."""
    module, name = _READERS[kind]
    reader: Callable[[bytes, Bounds], Findings] = getattr(import_module(module), name)
    return reader


def _result(kind: DocumentType, data: bytes, findings: Findings, bounds: Bounds) -> DocumentResult:
    warnings = list(findings.warnings)
    if findings.truncated:
        warnings.append(f"The text was cut after {bounds.max_text_characters} characters; what was kept is counted.")
    return {
        "document_type": kind.name,
        "media_type": kind.media_type,
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "encoding": findings.encoding,
        "title": findings.title,
        "author": findings.author,
        "description": findings.description,
        "created": findings.created,
        "modified": findings.modified,
        "language": findings.language,
        "page_count": findings.page_count,
        "page_count_source": findings.page_count_source.value if findings.page_count_source is not None else None,
        "word_count": len(findings.text.split()),
        "character_count": len(findings.text),
        "pages": findings.pages,
        "text": findings.text,
        "truncated": findings.truncated,
        "warnings": warnings,
    }
