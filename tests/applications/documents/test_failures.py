"""What an exception out of a parser becomes."""

from __future__ import annotations

import errno
import pickle
import struct
import zipfile
import zlib

import pytest

from penstock import Permanent, Retryable
from penstock_apps.documents.reading import DocumentFailure, classify


def _lxml_error() -> Exception:
    from lxml import etree

    with pytest.raises(etree.XMLSyntaxError) as caught:
        etree.fromstring(b"<unclosed")
    return caught.value


def _pypdf_error(name: str) -> Exception:
    from pypdf import errors

    error: Exception = getattr(errors, name)("pypdf said so")
    return error


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (zipfile.BadZipFile("bad"), DocumentFailure.CORRUPT),
        (zlib.error("bad"), DocumentFailure.CORRUPT),
        (struct.error("bad"), DocumentFailure.CORRUPT),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), DocumentFailure.CORRUPT),
        (KeyError("/Pages"), DocumentFailure.CORRUPT),
        (AssertionError(), DocumentFailure.CORRUPT),
        (OSError("a parser said so"), DocumentFailure.CORRUPT),
        (_lxml_error(), DocumentFailure.CORRUPT),
        (_pypdf_error("PdfReadError"), DocumentFailure.CORRUPT),
        (_pypdf_error("LimitReachedError"), DocumentFailure.TOO_COMPLEX),
        (RecursionError("deep"), DocumentFailure.TOO_COMPLEX),
        (_pypdf_error("FileNotDecryptedError"), DocumentFailure.ENCRYPTED),
        (_pypdf_error("WrongPasswordError"), DocumentFailure.ENCRYPTED),
        (_pypdf_error("DependencyError"), DocumentFailure.LIBRARY_MISSING),
        (ModuleNotFoundError("No module named 'pypdf'"), DocumentFailure.LIBRARY_MISSING),
        (FileNotFoundError(errno.ENOENT, "gone"), DocumentFailure.MISSING),
        (OSError(errno.EIO, "broken"), DocumentFailure.UNREADABLE),
        (TimeoutError(), DocumentFailure.UNREADABLE),
    ],
    ids=lambda value: value.name if isinstance(value, DocumentFailure) else type(value).__name__,
)
def test_each_exception_has_its_code(error, failure):
    classified = classify(error)
    assert isinstance(classified, Retryable if failure.retryable else Permanent)
    assert classified.code == failure.code
    assert classified.message.startswith(failure.sentence)
    assert type(error).__name__ in classified.message


def test_some_exceptions_are_left_alone():
    for error in (MemoryError(), KeyboardInterrupt(), SystemExit(), Permanent("no"), Retryable("later")):
        assert classify(error) is error


def test_a_message_quotes_little_of_what_a_stranger_wrote():
    classified = classify(ValueError("\x00\x1b[31m\ud800" + "x" * 10_000))
    assert isinstance(classified, Permanent)
    assert len(classified.message) < 700
    assert classified.message.isprintable()


def test_a_failure_reaches_the_parent_process_whole():
    for failure in DocumentFailure:
        error = failure.error("seen")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.code, copy.message) == (type(error), failure.code, error.message)


def test_only_trouble_with_the_disk_is_retryable():
    assert [failure.code for failure in DocumentFailure if failure.retryable] == ["DOCUMENT_UNREADABLE"]
    assert len({failure.code for failure in DocumentFailure}) == 10
