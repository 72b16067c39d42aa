"""Small pieces of text as pages have them: with marks, entities and blanks, where a person wants a sentence.

Strangers write these texts. Every pattern here looks at a character a bounded number of times, whatever they write:
what repeats does not give back (``*+``), or cannot match what begins the next try (``[^<>]``).
"""

from __future__ import annotations

import codecs
import html
import re

from penstock.ingest import declarable_encoding

_MARK = re.compile(r"<[^<>]{0,2000}+>")
_BREAK = re.compile(r"<\s*+(?:/\s*+(?:p|li|div|h[1-6]|tr)|br(?:\s*+/)?)\s*+>", re.IGNORECASE)
_SET_FRACTION = re.compile(r"<sup>\s*+(\d++)\s*+</sup>\s*+[/⁄]\s*+<sub>\s*+(\d++)\s*+</sub>", re.IGNORECASE)
_STEP_NUMBER = re.compile(r"(?:step\s*+\d{1,2}\s*+[.):]?+|\d{1,2}\s*+[.):])\s++", re.IGNORECASE)
_CHARSET = re.compile(rb"""<meta[^<>]{1,500}?charset\s*+=\s*+["']?\s*+([a-zA-Z0-9_:.-]{1,40})""", re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_HEAD = 4_096
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u2060\u2061\u2062\u2063\ufeff\u00ad"))
"""Characters without a form, which editors leave behind."""


def plain(text: str) -> str:
    """Text without marks and entities, with single blanks.

    >>> plain("<b>Soup</b> &amp;  bread")
    'Soup & bread'
    """
    if "&" in text:
        text = unescape(unescape(text))  # many pages escape what is escaped already
    if "<" in text:
        text = _without_marks(text)
    return " ".join(text.translate(_INVISIBLE).split())


def paragraphs(text: str) -> list[str]:
    """The lines of a text that are none in its source only: each plain, without empty ones.

    >>> paragraphs("<li>1 egg</li><li>Salt</li>")
    ['1 egg', 'Salt']
    """
    if "&lt;" in text or "&#" in text:
        text = unescape(text)
    return [line for part in _without_marks(text).splitlines() if (line := plain(part))]


def lines(text: str) -> list[str]:
    """The paragraphs of a text, without the numbers people put before steps."""
    return [_without_number(line) for line in paragraphs(text)]


def _without_marks(text: str) -> str:
    """Blocks end lines, and other marks are blanks; a fraction that is set with marks is one still."""
    return _MARK.sub(" ", _BREAK.sub("\n", _SET_FRACTION.sub(r" \1/\2", text)))


def unescape(text: str) -> str:
    """Text without entities; one that has a number of thousands of digits for one keeps them all."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


def _without_number(line: str) -> str:
    number = _STEP_NUMBER.match(line)
    return line if number is None else line[number.end() :]


def decode_page(body: bytes, server_charset: str | None) -> str:
    """A page's text: by its byte order mark, the server's charset, its own, and else as UTF-8 or Western European."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    own = _CHARSET.search(body[:_HEAD])
    for charset in (server_charset, own[1].decode("ascii", "replace") if own else None):
        if charset and (codec := declarable_encoding(charset)):
            return body.decode(codec, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")
