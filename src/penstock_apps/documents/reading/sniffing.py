"""Decides what a document is from its bytes, and compares that with what its name claims.

The name alone never decides: it only settles what the bytes leave open (whether text with a few tags is a page or
a README), and a name that contradicts the bytes is refused, because somebody sent something else than they meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from zipfile import BadZipFile

from penstock.ingest import OLE, ZIP, byte_order_mark, guess_utf_16, known_signature, open_zip
from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.collected_text import clean_line
from penstock_apps.documents.reading.failures import DocumentFailure

_SAMPLE = 65_536


class DocumentType(Enum):
    """The types we read, with the name people know and the media type."""

    PDF = ("PDF", "application/pdf")
    DOCX = ("DOCX", "application/vnd.openxmlformats-officedocument.wordprocessingml.document")
    HTML = ("HTML", "text/html")
    TEXT = ("plain text", "text/plain")

    def __init__(self, title: str, media_type: str) -> None:
        self.title = title
        self.media_type = media_type


_TYPES_BY_EXTENSION = {
    **dict.fromkeys((".pdf",), DocumentType.PDF),
    **dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), DocumentType.DOCX),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht"), DocumentType.HTML),
    **dict.fromkeys((".txt", ".text"), DocumentType.TEXT),
}
_TYPES_BY_MEDIA_TYPE = {
    **{kind.media_type: kind for kind in DocumentType},
    "application/x-pdf": DocumentType.PDF,
    "application/xhtml+xml": DocumentType.HTML,
}
# Written in a markup of their own, in which a tag or a whole page may stand.
# fmt: off
_OTHER_TEXT = frozenset((
    ".md", ".markdown", ".rst", ".adoc", ".csv", ".tsv", ".log", ".json", ".xml", ".svg", ".yaml", ".yml",
    ".toml", ".ini", ".tex", ".eml", ".py", ".js", ".ts", ".css",
))
# fmt: on

_PROLOGUE = re.compile(r"(?:\s+|<\?xml[^>]*>|<!--.*?-->)*", re.DOTALL)
_PAGE_START = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_TAG_START = re.compile(
    r"<(?:title|meta|link|script|style|h[1-6]|div|p|table|ul|ol|br|a|b|i|font|center|iframe|article|section|main)\b",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>", re.IGNORECASE)
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\b\t\n\f\r\x1b")) + b"\x7f"


class _Markup(Enum):
    NONE = 0
    SOME_TAG = 1
    FRAGMENT = 2
    PAGE = 3


@dataclass(frozen=True, slots=True)
class _Content:
    """What the bytes are: one of our types, or only the name of something else."""

    title: str
    kind: DocumentType | None = None
    markup: _Markup = _Markup.NONE
    failure: DocumentFailure = DocumentFailure.UNSUPPORTED
    is_recognised: bool = True


def sniff(data: bytes, *, declared_name: str, bounds: Bounds, declared_media_type: str | None = None) -> DocumentType:
    """The type to read these bytes as; raises where there is none, or the name claims another."""
    extension = PurePosixPath(declared_name).suffix.lower()
    claimed_type = _TYPES_BY_EXTENSION.get(extension)
    if claimed_type is None and not extension and declared_media_type is not None:
        claimed_type = _TYPES_BY_MEDIA_TYPE.get(declared_media_type.partition(";")[0].strip().lower())
    content = _recognise(data, bounds)
    if content.failure is DocumentFailure.ENCRYPTED:
        raise content.failure.error(f"It is {content.title}.")
    if content.kind is DocumentType.TEXT:
        if content.markup is _Markup.NONE or extension in _OTHER_TEXT:
            kind = DocumentType.TEXT
        elif content.markup is _Markup.PAGE:
            kind = DocumentType.HTML
        elif claimed_type is not None:
            # Text with tags in it: both names are honest.
            kind = claimed_type if claimed_type is DocumentType.HTML else DocumentType.TEXT
        else:
            kind = DocumentType.HTML if content.markup is _Markup.FRAGMENT else DocumentType.TEXT
    elif content.kind is not None:
        kind = content.kind
    else:
        raise _refusal(content, claimed_type, declared_name)
    if claimed_type is not None and claimed_type is not kind:
        raise _mislabelled_error(declared_name, claimed_type, kind.title)
    return kind


def _refusal(content: _Content, claimed_type: DocumentType | None, declared_name: str) -> Exception:
    if claimed_type is None:
        return content.failure.error(f"It is {content.title}; PDF, DOCX, HTML and plain text are read.")
    if claimed_type in (DocumentType.PDF, DocumentType.DOCX) and not content.is_recognised:
        # Nothing else either, so more likely a damaged one than something else under a wrong name.
        return DocumentFailure.CORRUPT.error(
            f"It does not begin like {claimed_type.title}, nor like anything else known."
        )
    if content.failure is DocumentFailure.CORRUPT and claimed_type is DocumentType.DOCX:
        return content.failure.error(f"It is {content.title}.")
    return _mislabelled_error(declared_name, claimed_type, content.title)


def _mislabelled_error(declared_name: str, claimed_type: DocumentType, actual: str) -> Exception:
    name = clean_line(declared_name)[-120:]
    return DocumentFailure.MISLABELLED.error(
        f"{name!r} claims to be {claimed_type.title}, but the content is {actual}."
    )


def _recognise(data: bytes, bounds: Bounds) -> _Content:
    if data.startswith(OLE):
        return _recognise_ole(data)
    if data.startswith(ZIP):
        return _recognise_archive(data, bounds)
    signature = known_signature(data)
    if signature is not None:
        return _Content(signature)
    # After the others: an archive that begins with a PDF, uncompressed, also has a PDF header near its start.
    if _is_pdf(data):
        return _Content(DocumentType.PDF.title, DocumentType.PDF)
    text = _as_text(data)
    if text is None:
        return _Content("binary data of no known kind", is_recognised=False)
    return _Content(DocumentType.TEXT.title, DocumentType.TEXT, markup=_markup(text))


def _is_pdf(data: bytes) -> bool:
    position = data.find(b"%PDF-", 0, 1024)
    if position < 0:
        return False
    # Readers accept some bytes before the header, but a text may also mention it.
    return not data[:position].strip() or data.rfind(b"startxref") > position


def _recognise_ole(data: bytes) -> _Content:
    if "EncryptedPackage".encode("utf-16-le") in data:
        return _Content("an Office document with a password", failure=DocumentFailure.ENCRYPTED)
    if "WordDocument".encode("utf-16-le") in data:
        return _Content("a Word 97-2003 document (.doc)")
    return _Content("an Office 97-2003 document")


def _recognise_archive(data: bytes, bounds: Bounds) -> _Content:
    try:
        with open_zip(data, bounds.max_members) as archive:
            names = set(archive.namelist())
    except BadZipFile as error:
        office = b"[Content_Types].xml" in data and b"word/" in data
        return _Content(
            f"a damaged {'DOCX' if office else 'ZIP archive'} ({error})",
            failure=DocumentFailure.CORRUPT if office else DocumentFailure.UNSUPPORTED,
        )
    folders = {name.partition("/")[0] for name in names}
    if "[Content_Types].xml" in names:
        if "word" in folders:
            return _Content(DocumentType.DOCX.title, DocumentType.DOCX)
        if "xl" in folders:
            return _Content("an Excel workbook (XLSX)")
        if "ppt" in folders:
            return _Content("a PowerPoint presentation (PPTX)")
    if "mimetype" in names:
        return _Content("an OpenDocument file or an e-book (EPUB)")
    return _Content("a ZIP archive")


def _as_text(data: bytes) -> str | None:
    """A sample of the bytes as characters, or None where they are no text."""
    mark = byte_order_mark(data)
    encoding = mark[0] if mark is not None else guess_utf_16(data, whole=True)
    if encoding is not None and encoding != "utf-8":
        text = data[:_SAMPLE].decode(encoding, "replace").lstrip("\ufeff")
        strange = sum(not (character.isprintable() or character.isspace()) for character in text)
        return text if strange + text.count("\ufffd") <= len(text) * 0.02 else None
    sample = data[:_SAMPLE] + data[max(_SAMPLE, len(data) - 4096) :]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    text = sample.decode("utf-8", "replace").lstrip("\ufeff")
    # UTF-8 is hard to hit by chance; for any other encoding, control characters are the only evidence.
    valid = text.count("\ufffd") <= 2
    return text if controls <= len(sample) * (0.02 if valid else 0.005) else None


def _markup(text: str) -> _Markup:
    prologue = _PROLOGUE.match(text)
    start = prologue.end() if prologue is not None else 0
    if _PAGE_START.match(text, start):
        return _Markup.PAGE
    if _TAG_START.match(text, start):
        return _Markup.FRAGMENT
    return _Markup.SOME_TAG if _ANY_TAG.search(text) else _Markup.NONE
