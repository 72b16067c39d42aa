"""Which characters some bytes mean: a byte order mark, a declaration, UTF-8, then a guess that says so."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# A list, because Python would also follow a declaration into punycode, idna or unicode_escape, which are no
# encodings of a page and take quadratic time. As browsers do, Latin-1 and ASCII are read as windows-1252.
_DECLARABLE = {
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "latin1", "latin-1", "us-ascii", "ascii"), "windows-1252"),
    **dict.fromkeys(("windows-1252", "cp1252", "x-cp1252"), "windows-1252"),
    **dict.fromkeys(("utf-8", "utf8", "unicode-1-1-utf-8"), "utf-8"),
    # A page whose declaration could be read byte by byte is not in UTF-16, whatever it says.
    **dict.fromkeys(("utf-16", "utf-16le", "utf-16be", "unicode"), "utf-8"),
    **{f"iso-8859-{number}": f"iso-8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-{number}": f"cp{number}" for number in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258, 874)},
    "iso-8859-9": "cp1254",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "macintosh": "mac-roman",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "gb18030": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "euc-jp": "euc-jp",
    "iso-2022-jp": "iso-2022-jp",
    "euc-kr": "cp949",
}
_FALLBACK = "windows-1252"
_REPLACEMENT = "\ufffd"
_SAMPLE = 65_536


@dataclass(frozen=True, slots=True)
class DecodedText:
    """The characters, the encoding they were read as, and what was doubtful about it."""

    text: str
    encoding: str
    warnings: list[str] = field(default_factory=list)


def declarable_encoding(name: str) -> str | None:
    """The encoding that a page or its server may declare by this name; None where there is no such.

    >>> declarable_encoding("ISO-8859-1"), declarable_encoding("punycode")
    ('windows-1252', None)
    """
    return _DECLARABLE.get(name.strip().lower())


def byte_order_mark(data: bytes) -> tuple[str, int] | None:
    """The encoding a byte order mark names, and the mark's length."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    return None


def decode_text(data: bytes, *, declared: str | None = None) -> DecodedText:
    """Read bytes as text; it never fails, but says in its warnings what it had to replace or guess."""
    mark = byte_order_mark(data)
    if mark is not None:
        encoding, length = mark
        return _decode_replacing(data[length:], encoding, [])
    warnings: list[str] = []
    if declared is not None:
        encoding_declared = declarable_encoding(declared)
        if encoding_declared is None:
            warnings.append(f"The declared character set {declared.strip()[:40]!r} is not known; it was ignored.")
        else:
            try:
                return DecodedText(data.decode(encoding_declared), encoding_declared)
            except UnicodeDecodeError:
                warnings.append(f"The text is not in its declared character set {declared.strip()[:40]!r}.")
    # Before UTF-8, for which the zeros of UTF-16 are valid characters.
    sixteen_bit = guess_utf_16(data, whole=True)
    if sixteen_bit is not None:
        return _decode_replacing(data, sixteen_bit, [*warnings, f"The character set was guessed as {sixteen_bit}."])
    try:
        return DecodedText(data.decode("utf-8"), "utf-8", warnings)
    except UnicodeDecodeError:
        return _guess(data, warnings)


def guess_utf_16(data: bytes, *, whole: bool = False) -> str | None:
    """UTF-16 without a mark, seen by the zero in every other byte of western text; ``whole``: this is all there is.

    >>> guess_utf_16("plain letters".encode("utf-16-le")), guess_utf_16(b"plain letters")
    ('utf-16-le', None)
    """
    sample = data[:_SAMPLE]
    if len(sample) < 4 or (whole and len(data) % 2):
        return None
    half = len(sample) // 2
    even_zeros, odd_zeros = sample[0::2].count(0), sample[1::2].count(0)
    if odd_zeros > half * 0.4 and even_zeros < half * 0.05:
        return "utf-16-le"
    if even_zeros > half * 0.4 and odd_zeros < half * 0.05:
        return "utf-16-be"
    return None


def _guess(data: bytes, warnings: list[str]) -> DecodedText:
    lenient = data.decode("utf-8", "replace")
    damaged_count = lenient.count(_REPLACEMENT)
    beyond_ascii = sum(not character.isascii() for character in lenient[:_SAMPLE])
    if beyond_ascii > 10 * damaged_count:
        return DecodedText(lenient, "utf-8", [*warnings, _replacement_warning(damaged_count, "utf-8")])
    return _decode_replacing(data, _FALLBACK, [*warnings, f"The character set was guessed as {_FALLBACK}."])


def _decode_replacing(data: bytes, encoding: str, warnings: list[str]) -> DecodedText:
    try:
        return DecodedText(data.decode(encoding), encoding, warnings)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        return DecodedText(text, encoding, [*warnings, _replacement_warning(text.count(_REPLACEMENT), encoding)])


def _replacement_warning(count: int, encoding: str) -> str:
    return f"{count} sequences that are not valid {encoding} were replaced."
