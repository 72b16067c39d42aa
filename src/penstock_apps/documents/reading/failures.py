"""Every way a document can fail, and which of them a retry may cure.

Anything wrong with the document itself is Permanent: the same bytes fail the same way tomorrow. Only trouble in
reaching the bytes is Retryable. A scan without any text is no failure.
"""

from __future__ import annotations

import errno
from enum import Enum

from penstock import Permanent, Retryable
from penstock.ingest import ZipProblem, ZipRefused
from penstock_apps.documents.reading.collected_text import clean_line

_MISSING_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG})
_COMPLEX_MARKUP = ("Excessive depth", "XML_PARSE_HUGE", "entity loop", "amplification", "Maximum entity")


class DocumentFailure(Enum):
    """The stable codes, each with a sentence for a person and its class."""

    CORRUPT = ("DOCUMENT_CORRUPT", "The document is damaged and cannot be read.", False)
    ENCRYPTED = ("DOCUMENT_ENCRYPTED", "The document is encrypted; send it without a password.", False)
    EMPTY = ("DOCUMENT_EMPTY", "The document has no content.", False)
    TOO_LARGE = ("DOCUMENT_TOO_LARGE", "The file is larger than this service accepts.", False)
    TOO_COMPLEX = ("DOCUMENT_TOO_COMPLEX", "The document would take too much to unpack or read.", False)
    MISLABELLED = ("DOCUMENT_MISLABELLED", "The document is not what its name says.", False)
    UNSUPPORTED = ("DOCUMENT_UNSUPPORTED", "This kind of document cannot be read here.", False)
    LIBRARY_MISSING = (
        "DOCUMENT_LIBRARY_MISSING",
        "A library that reads this kind of document is not installed here: install penstock[documents].",
        False,
    )
    MISSING = ("DOCUMENT_MISSING", "The stored file is not there any more.", False)
    UNREADABLE = ("DOCUMENT_UNREADABLE", "The stored file could not be read just now.", True)

    def __init__(self, code: str, sentence: str, retryable: bool) -> None:
        self.code = code
        self.sentence = sentence
        self.retryable = retryable

    def error(self, detail: str = "") -> Permanent | Retryable:
        """The exception to raise: the sentence, and what was seen in this document."""
        message = f"{self.sentence} {clean_line(detail)}".strip()
        if self.retryable:
            return Retryable(message, code=self.code)
        return Permanent(message, code=self.code)


_FAILURES_OF_ZIP = {ZipProblem.ENCRYPTED: DocumentFailure.ENCRYPTED, ZipProblem.UNKNOWN_METHOD: DocumentFailure.CORRUPT}


def classify(error: BaseException, *, where: str = "") -> BaseException:
    """Turn whatever came out of reading one document into one of the failures above.

    An error that is classified already, a MemoryError (the process pool decides about those) and what is no
    ordinary Exception come back as they are. What nobody foresaw is the document's fault: its parser choked on it.
    """
    if isinstance(error, MemoryError | Permanent | Retryable) or not isinstance(error, Exception):
        return error
    return _failure_of(error).error(where + _description(error))


def _failure_of(error: Exception) -> DocumentFailure:
    if isinstance(error, ZipRefused):
        return _FAILURES_OF_ZIP.get(error.problem, DocumentFailure.TOO_COMPLEX)
    names = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(error).__mro__}
    if isinstance(error, RecursionError) or "pypdf.LimitReachedError" in names:
        return DocumentFailure.TOO_COMPLEX
    if "pypdf.FileNotDecryptedError" in names:
        return DocumentFailure.ENCRYPTED
    if isinstance(error, ImportError) or "pypdf.DependencyError" in names:
        return DocumentFailure.LIBRARY_MISSING
    if "lxml.LxmlError" in names and any(sign in str(error) for sign in _COMPLEX_MARKUP):
        return DocumentFailure.TOO_COMPLEX
    if isinstance(error, OSError):
        return _failure_of_file(error)
    return DocumentFailure.CORRUPT


def _failure_of_file(error: OSError) -> DocumentFailure:
    if error.errno in _MISSING_FILE:
        return DocumentFailure.MISSING
    # Parsers raise OSError without a number about content; the operating system always gives one.
    if error.errno is None and not isinstance(error, TimeoutError):
        return DocumentFailure.CORRUPT
    return DocumentFailure.UNREADABLE


def _description(error: Exception) -> str:
    if isinstance(error, ZipRefused):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        # str() of an OSError holds the path, which is ours and not the user's business.
        return f"({type(error).__name__}: {error.strerror})"
    return f"({type(error).__name__}: {error})" if str(error) else f"({type(error).__name__})"
