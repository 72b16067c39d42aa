"""Turning the bytes of an uploaded table into text: which encoding it is, and the text, a bounded piece at a time.

How the encoding is decided, first match wins:

1. what the person who uploaded it says;
2. a byte order mark;
3. UTF-16 without a mark, known by a zero byte in every other place;
4. UTF-8, if at least half of what is not ASCII is: text in another encoding is almost never UTF-8 by accident;
5. Windows-1252, which is what programs write that do not say; Latin-1 if there are bytes it does not have.

Single-byte encodings look alike to a program, so Polish or Greek text in an old encoding has to be named by its owner.

Bytes that are not text become a mark which no file can hold (`UNDECODABLE`), never a guess: the row they are in is
bad, and the rows around it are read as if nothing were wrong.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import InvalidInput
from penstock.ingest.text import byte_order_mark, guess_utf_16

BLOCK_BYTES = 256 * 1024
"""How much is read at a time, and how much is looked at to decide."""

LINE_CHARACTERS = 1024 * 1024
"""A line longer than this is no line of a table; it is dropped and marked, so that memory stays bounded."""

# Single halves of a surrogate pair: no decoder gives them, and UTF-8 cannot encode them, which is how they are found.
UNDECODABLE = "\udcff"
OVERLONG = "\udcfe"

_ERRORS = "penstock.undecodable"
# A mark is dropped with the first character, so that the encoding may be named by its family.
_BY_MARK = {
    "utf-8": "utf-8-sig", "utf-32-le": "utf-32", "utf-32-be": "utf-32", "utf-16-le": "utf-16", "utf-16-be": "utf-16",
}  # fmt: skip
# Python has them as text encodings, but they are for host names and source code.
_NOT_FOR_FILES = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "unicode-escape", "undefined"})
_NOT_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_LINE_END = re.compile(r"\r\n|\r|\n")


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError):
        return UNDECODABLE, error.end
    raise error


codecs.register_error(_ERRORS, _mark_undecodable)


def choose_encoding(sample: bytes, *, whole: bool, declared_encoding: str | None = None) -> str:
    """Decide the encoding of a file from its beginning; `whole` says that the sample is all there is."""
    mark = byte_order_mark(sample)
    marked_encoding = None if mark is None else _BY_MARK[mark[0]]
    if declared_encoding is not None:
        return _check_declared(declared_encoding, marked_encoding)
    if marked_encoding is not None:
        return marked_encoding
    return guess_utf_16(sample) or ("utf-8" if _is_utf_8(sample, whole=whole) else _single_byte(sample))


def decode_sample(sample: bytes, encoding: str, *, whole: bool) -> str:
    """Give the text of a file's beginning; a character cut at the end of the sample is left out."""
    decoder = codecs.getincrementaldecoder(encoding)(errors=_ERRORS)
    return decoder.decode(sample, whole).removeprefix("\ufeff")


def read_text(path: Path, encoding: str) -> Iterator[str]:
    """Give a file's text in pieces of a bounded size, each one ending where a line ends.

    A line that is too long to be one is replaced by a line with the mark `OVERLONG`.
    """
    decoder = codecs.getincrementaldecoder(encoding)(errors=_ERRORS)
    pending_text, first, dropping, final = "", True, False, False
    with path.open("rb") as file:
        while not final:
            chunk = file.read(BLOCK_BYTES)
            final = not chunk
            text = decoder.decode(chunk, final)
            if first and text:
                text, first = text.removeprefix("\ufeff"), False
            text = pending_text + text
            end = len(text) if final else _last_line_end(text)
            if dropping and end:
                line_end = _LINE_END.search(text)
                after = line_end.end() if line_end else len(text)
                yield f"{OVERLONG}\n{text[after:end]}"
                dropping = False
            elif end:
                yield text[:end]
            pending_text = text[end:]
            if dropping or len(pending_text) > LINE_CHARACTERS:
                # The last character stays: it may be the first half of a CR LF.
                pending_text, dropping = pending_text[-1:], True


def has_marks(text: str) -> bool:
    """Say whether there are characters in the text that no cell can keep."""
    if "\0" in text:
        return True
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _last_line_end(text: str) -> int:
    """Where the last complete line ends; a CR at the very end may still get its LF, so it does not count."""
    return (text.rfind("\n") + 1) or (text.rfind("\r", 0, max(len(text) - 1, 0)) + 1)


def _check_declared(declared_encoding: str, marked_encoding: str | None) -> str:
    try:
        name = codecs.lookup(declared_encoding).name
        b"a,b\n".decode(name, "replace")  # refuses codecs that do not make text, such as base64
    except (LookupError, ValueError):
        name = "undefined"
    if name in _NOT_FOR_FILES:
        raise InvalidInput(
            f"The encoding {declared_encoding[:60]!r} is not known. Name one such as utf-8, windows-1252 or "
            "iso-8859-2; name none to have it detected.",
            field="encoding",
            code="ENCODING_UNKNOWN",
        )
    if name in ("utf-16", "utf-32") and marked_encoding != name:
        return f"{name}-le"  # these two want a mark; without one, little-endian is what there is
    return name


def _is_utf_8(sample: bytes, *, whole: bool) -> bool:
    if sample.isascii():
        return True
    text = decode_sample(sample, "utf-8", whole=whole)
    broken_count = text.count(UNDECODABLE)
    if not broken_count:
        return True
    # Bytes that make a character of UTF-8 hardly ever stand together in text of another encoding. Where they do as
    # often as not, some rows are damaged, and it is no other encoding.
    good = sum(1 for character in text if character > "\x7f") - broken_count
    return good >= broken_count


def _single_byte(sample: bytes) -> str:
    return "latin-1" if _NOT_IN_CP1252.search(sample) else "cp1252"
