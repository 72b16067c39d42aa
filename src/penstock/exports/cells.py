"""What one value becomes in a cell, so that a spreadsheet shows it and never runs it.

In CSV a text that a spreadsheet would take for a formula is guarded (:mod:`penstock.formulas`). In a workbook a text is
marked as text, and stays as it is. The first cell of a row of CSV begins with no sign at all.

Most cells need nothing. The rows are therefore made by one expression that lets harmless values pass
(:func:`csv_row`), and lines in which no sign stands where a spreadsheet may split them are done
(:func:`~penstock.formulas.may_split`); only the rest is looked at cell by cell (:func:`guarded_row`).
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable
from typing import Any, TypeAlias

import orjson

from penstock.formulas import guard

Value: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None

TEXT_OF_A_CELL = 32_767
DIGITS_OF_A_NUMBER = 15

_HARMLESS_FIRST = frozenset(string.ascii_letters + string.digits + "!#$%&()*,./:;<>?[\\]^_`{|}~") | {""}
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


def guarded_row(row: Iterable[Value]) -> list[str | int | float | None]:
    """The same as ``csv_row``, for any values.

    >>> guarded_row([-5, -5, "a;=1+1"])
    ["'-5", -5, "a;'=1+1"]
    """
    cells: list[str | int | float | None] = [csv_cell(value) for value in row]
    # Whatever follows it belongs to it where lines are split at semicolons: -5 and "1+cmd" are the formula -5,1+cmd.
    if cells[1:] and str(cells[0])[:1] in ("-", "+"):
        cells[0] = f"'{cells[0]}"
    return cells


def csv_cell(value: Value) -> str | int | float:
    """A value as CSV may have it: numbers stay numbers, no text is a formula, lists and objects are JSON.

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
    return guard(_text(value))


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
