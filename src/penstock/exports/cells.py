"""What one value becomes in a cell, so that a spreadsheet shows it and never runs it.

A spreadsheet that opens CSV takes text which begins with a sign such as ``=`` for a formula, also after blanks, and a
formula can send away what stands beside it. In CSV such text gets an apostrophe in front. In a workbook a text is
marked as text, and stays as it is.

Where a comma is part of a number, a spreadsheet splits a line at semicolons instead, and it heeds a quote only where a
field of its own begins. Our quotes are then text: a semicolon, a tab, a bar or the end of a line within a cell begins
a field, and so does the line itself, with all that follows its first cell. So each part of a text behind such a
character is looked at like a whole one, and the first cell of a row begins with no sign at all.

Most cells need nothing. The rows are therefore made by one expression that lets harmless values pass
(:func:`csv_row`), and lines in which no sign stands behind such a character are done (:func:`may_split`); only the
rest is looked at cell by cell (:func:`guarded_row`).
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable
from typing import Any, TypeAlias

import orjson

Value: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None

TEXT_OF_A_CELL = 32_767
DIGITS_OF_A_NUMBER = 15

_SIGNS = "=+\\-@＝＋－＠"
# Blanks, control characters, invisible ones and quotes: what may stand before a sign without anybody seeing it.
_UNSEEN = (
    r"\x00-\x08\x0b\x0c\x0e-\x20\x7f-\xa0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
    r"\ud800-\udfff\ufffe\uffff\""
)
_FORMULA = re.compile(rf"[\t\r\n{_UNSEEN}]*[{_SIGNS}]")
# Each run of what nobody sees ends where the next one begins, so that no text is gone through twice.
_FORMULA_WITHIN = re.compile(rf"[;|\t\r\n][{_UNSEEN}]*[{_SIGNS}]")
_LINE_OR_TAB = ("\t", "\r", "\n")
_SEPARATORS = re.compile("([;|\t\r\n])")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]+)?%?")
_HARMLESS_FIRST = frozenset(string.ascii_letters + string.digits + "!#$%&'()*,./:;<>?[\\]^_`{|}~") | {""}
_PASSES_IN_CSV = frozenset({int, float, type(None)})

_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_PASSES_IN_A_SHEET = frozenset({float, bool, type(None)})
_LARGEST = 10**DIGITS_OF_A_NUMBER - 1
# A character outside the basic plane counts twice for Excel, so that half the length is short enough at sight.
_SHORT = TEXT_OF_A_CELL // 2


def csv_row(row: Iterable[Any]) -> list[str | int | float | None]:
    """A row of values for ``csv.writer``, which writes None as nothing by itself; right where ``may_split`` says no."""
    return [
        value
        if ((kind := type(value)) is str and value[:1] in _HARMLESS_FIRST) or kind in _PASSES_IN_CSV
        else ("TRUE" if value else "FALSE")
        if kind is bool
        else csv_cell(value)
        for value in row
    ]


def may_split(lines: str) -> bool:
    """May a spreadsheet of some locale split these lines of CSV so that a field is a formula?"""
    return _FORMULA_WITHIN.search(f"\n{lines}") is not None


def guarded_row(row: Iterable[Value]) -> list[str | int | float | None]:
    """The same as ``csv_row``, for any values.

    >>> guarded_row([-5, -5, "a;=1+1"])
    ["'-5", -5, "a;'=1+1"]
    """
    search = _SEPARATORS.search
    cells = [_guard_parts(cell) if type(cell) is str and search(cell) else cell for cell in csv_row(row)]
    # Whatever follows it belongs to it where lines are split at semicolons: -5 and "1+cmd" are the formula -5,1+cmd.
    if cells[1:] and str(cells[0])[:1] in ("-", "+"):
        cells[0] = f"'{cells[0]}"
    return cells


def csv_cell(value: Value) -> str | int | float:
    """A value as CSV may have it: numbers stay numbers, no text is a formula, lists and objects are JSON.

    A text that is a plain number stays as it is, since nothing in it can be run.

    >>> csv_cell("=SUM(A1:A9)"), csv_cell(" @now"), csv_cell("-5,20"), csv_cell(-5)
    ("'=SUM(A1:A9)", "' @now", '-5,20', -5)
    >>> csv_cell(True), csv_cell(None), csv_cell({"price": 3})
    ('TRUE', '', '{"price":3}')
    """
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return value
    text = _text(value)
    if text.startswith(_LINE_OR_TAB) or (_FORMULA.match(text) and not _NUMBER.fullmatch(text)):
        text = f"'{text}"
    return text if _SEPARATORS.search(text) is None else _guard_parts(text)


def _guard_parts(text: str) -> str:
    """The text with an apostrophe before each formula behind a sign at which it may be split."""
    first, *parts = _SEPARATORS.split(text)
    return first + "".join(f"'{part}" if _FORMULA.match(part) else part for part in parts)


def sheet_row(row: Iterable[Any]) -> list[str | int | float | None]:
    """A row of values for a workbook."""
    return [
        value
        if ((kind := type(value)) is str and value.isprintable() and len(value) <= _SHORT)
        or (kind is int and -_LARGEST <= value <= _LARGEST)
        or kind in _PASSES_IN_A_SHEET
        else sheet_cell(value)
        for value in row
    ]


def sheet_cell(value: Value) -> str | int | float | None:
    r"""A value as a cell of a workbook may have it.

    Excel keeps fifteen digits of a number, so a longer one is written as text. Of a text, what XML cannot carry is
    taken out, the end of a line is a line feed, and what is longer than a cell is cut.

    >>> sheet_cell("=1+1"), sheet_cell("a\x00b\r\nc"), sheet_cell(2**60), sheet_cell([1, 2])
    ('=1+1', 'ab\nc', '1152921504606846976', '[1,2]')
    """
    match value:
        case None | bool() | float():
            return value
        case int():
            return int(value) if -_LARGEST <= value <= _LARGEST else str(int(value))
    text = _NOT_IN_XML.sub("", without_surrogates(_text(value))).replace("\r\n", "\n").replace("\r", "\n")
    return _cut(text) if len(text) > _SHORT else text


def without_surrogates(text: str) -> str:
    """The text with a mark in place of each half of a character, which no encoding can write."""
    return _SURROGATE.sub("\ufffd", text)


def _cut(text: str) -> str:
    """At most as much as a cell holds, counted as Excel does: in units of UTF-16."""
    units = text.encode("utf-16-le")
    if len(units) <= 2 * TEXT_OF_A_CELL:
        return text
    # Half a character at the cut is left out.
    return units[: 2 * (TEXT_OF_A_CELL - 1)].decode("utf-16-le", errors="ignore") + "…"


def _text(value: object) -> str:
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, list | dict):
        return f"{value}"
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # A number beyond 64 bits, or half a character: slower, but it writes them.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
