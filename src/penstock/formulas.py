"""What a spreadsheet takes for a formula in CSV: guarded on the way out, and the guard taken off on the way in.

A spreadsheet that opens CSV takes text which begins with a sign such as ``=`` for a formula, also after blanks, and a
formula can send away what stands beside it. Such text gets an apostrophe in front.

Where a comma is part of a number, a spreadsheet splits a line at semicolons instead, and it heeds a quote only where a
field of its own begins. Our quotes are then text: a semicolon, a tab, a bar or the end of a line within a cell begins
a field, and so does the line itself, with all that follows its first cell. So each part of a text behind such a
character is looked at like a whole one.

Text that looks guarded already gets one apostrophe more. So what is exported and taken in again is what it was.
"""

from __future__ import annotations

import re

_SIGNS = "=+\\-@＝＋－＠"
# Blanks, control characters, invisible ones and quotes: what may stand before a sign without anybody seeing it.
_UNSEEN = (
    r"\x00-\x08\x0b\x0c\x0e-\x20\x7f-\xa0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
    r"\ud800-\udfff\ufffe\uffff\""
)
_BEGINNING = rf"(?:[\t\r\n]|[\t\r\n{_UNSEEN}]*[{_SIGNS}])"
_FORMULA = re.compile(_BEGINNING)
_GUARDED_TEXT = re.compile(rf"'+{_BEGINNING}")
_PART = re.compile(rf"'*[{_UNSEEN}]*[{_SIGNS}]")
_GUARDED_PART = re.compile(rf"'+[{_UNSEEN}]*[{_SIGNS}]")
# Each run of what nobody sees ends where the next one begins, so that no text is gone through twice.
_PART_WITHIN = re.compile(rf"[;|\t\r\n]'*[{_UNSEEN}]*[{_SIGNS}]")
_GUARD_WITHIN = re.compile(rf"'{_BEGINNING}")
_SEPARATORS = re.compile("([;|\t\r\n])")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]+)?%?")


def guard(text: str) -> str:
    """The text as CSV may have it. A plain number stays as it is, since nothing in it can be run.

    >>> guard("=SUM(A1:A9)"), guard(" @now"), guard("-5,20"), guard("'=1"), guard("a;=1")
    ("'=SUM(A1:A9)", "' @now", '-5,20', "''=1", "a;'=1")
    """
    if _GUARDED_TEXT.match(text) or (_FORMULA.match(text) and not _NUMBER.fullmatch(text)):
        text = f"'{text}"
    if _SEPARATORS.search(text) is None:
        return text
    first, *parts = _SEPARATORS.split(text)
    return first + "".join(f"'{part}" if _PART.match(part) else part for part in parts)


def unguard(text: str) -> str:
    """The text that was guarded; any other text as it is.

    >>> unguard("'=SUM(A1:A9)"), unguard("a;'=1"), unguard("men's -5")
    ('=SUM(A1:A9)', 'a;=1', "men's -5")
    """
    if "'" not in text:
        return text
    if _SEPARATORS.search(text) is not None:
        first, *parts = _SEPARATORS.split(text)
        text = first + "".join(part[1:] if _GUARDED_PART.match(part) else part for part in parts)
    return text[1:] if _GUARDED_TEXT.match(text) else text


def may_split(lines: str) -> bool:
    """May a spreadsheet of some locale split these lines of CSV so that a field is a formula?"""
    return _PART_WITHIN.search(f"\n{lines}") is not None


def may_be_guarded(lines: str) -> bool:
    """May a cell of these lines of CSV be guarded?"""
    return "'" in lines and _GUARD_WITHIN.search(lines) is not None
