"""What expat meets in a sheet and in the shared strings: kept no further than a cell and a row may go.

The handlers are called five times for each cell, a million times for each hundred thousand rows of ten: so they are
closures over plain variables, what comes most often is looked at first, and nothing is called that can be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import digits
from typing import NamedTuple

from penstock.ingest.number_formats import plain_number, written_moment

_LAST_COLUMN = 16_384
_MOST_DIGITS = 7
"""Of a row's number: a sheet has 1,048,576."""
_STRING_OVERHEAD = 64
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_COLUMN = re.compile("[A-Z]{1,3}")

Attributes = dict[str, str]
NumberedRow = tuple[int, list[str]]
"""A row's number, as a spreadsheet shows it, and its cells as text."""


class Handlers(NamedTuple):
    """What a parser calls."""

    start: Callable[[str, Attributes], None]
    end: Callable[[str], None]
    text: Callable[[str], None]


class StringReader:
    """Collects the shared strings; text of several runs is joined, the reading aids of Japanese are left out."""

    def __init__(self, longest: int) -> None:
        self.strings: list[str] = []
        self.held_bytes = 0
        self._room_for = longest + 1

    def handlers(self) -> Handlers:
        """For one run over the strings."""
        strings, room_for = self.strings, self._room_for
        value, is_wanted, is_aside = "", False, False

        def start(name: str, _attributes: Attributes) -> None:
            nonlocal value, is_wanted, is_aside
            if name == "t":
                is_wanted = not is_aside
            elif name == "si":
                value = ""
            elif name == "rPh":
                is_aside = True
            elif ":" in name:
                start(local(name), _attributes)

        def end(name: str) -> None:
            nonlocal is_wanted, is_aside
            if name == "t":
                is_wanted = False
            elif name == "si":
                string = unescape(value)
                strings.append(string)
                self.held_bytes += len(string) + _STRING_OVERHEAD
            elif name == "rPh":
                is_aside = False
            elif ":" in name:
                end(local(name))

        def text(data: str) -> None:
            nonlocal value
            if is_wanted:
                value = keep_text(value, data, room_for) if value else data

        return Handlers(start, end, text)


class SheetReader:
    """Collects the rows of a sheet as the parser comes by them."""

    def __init__(
        self,
        strings: Sequence[str],
        formats: Mapping[str, Callable[[str], str]],
        columns: int,
        longest: int,
    ) -> None:
        """``formats`` say how a number is shown under the styles in which it is more than itself."""
        self._strings = strings
        self._formats = formats
        self._last_column = columns + 1  # whatever lies further out, one cell too many is enough to tell
        self._room_for = longest + 1
        self._rows: list[NumberedRow] = []

    def take_rows(self) -> list[NumberedRow]:
        """Hand over the rows that are complete."""
        rows = self._rows[:]
        self._rows.clear()
        return rows

    def handlers(self) -> Handlers:
        """For one run over the sheet."""
        strings, formats = self._strings, self._formats
        rows, last_column, room_for = self._rows, self._last_column, self._room_for
        row: list[str] = []
        number = column = 0
        kind, style, value = "n", "0", ""
        is_wanted = is_aside = False

        def start(name: str, attributes: Attributes) -> None:
            nonlocal row, number, column, kind, style, value, is_wanted, is_aside
            if name == "v" or name == "t":
                is_wanted = not is_aside
            elif name == "c":
                column = _COLUMNS[attributes["r"].rstrip(digits)] if "r" in attributes else column + 1
                kind = attributes["t"] if "t" in attributes else "n"  # noqa: SIM401 - a call costs more
                style = attributes["s"] if "s" in attributes else "0"  # noqa: SIM401
                value = ""
            elif name == "row":
                row, column = [], 0
                number = _row_number(attributes.get("r"), number)
            elif name == "rPh":
                is_aside = True
            elif ":" in name:
                start(local(name), attributes)

        def end(name: str) -> None:
            nonlocal is_wanted, is_aside
            if name == "v" or name == "t":
                is_wanted = False
            elif name == "c":
                if not value:
                    return
                if kind == "s":
                    cell = strings[int(value)]
                elif kind != "n":
                    cell = _CELLS.get(kind, plain_number)(value)
                elif style in formats:
                    cell = formats[style](value)
                else:
                    cell = plain_number(value)
                if cell and column == len(row) + 1 and column <= last_column:
                    row.append(cell)
                elif cell:
                    put(row, min(column, last_column), cell)
            elif name == "row":
                if any(map(str.strip, row)):
                    rows.append((number, row))
            elif name == "rPh":
                is_aside = False
            elif ":" in name:
                end(local(name))

        def text(data: str) -> None:
            nonlocal value
            if is_wanted:
                value = keep_text(value, data, room_for) if value else data

        return Handlers(start, end, text)


def keep_text(value: str, data: str, room_for: int) -> str:
    """A text and what follows it, up to one character beyond what a cell may hold; what is fed at once may be more.

    >>> keep_text("ab", "cdef", 4), keep_text("abcde", "f", 4)
    ('abcd', 'abcde')
    """
    return value + data[: max(room_for - len(value), 0)]


def put(row: list[str], column: int, cell: str) -> None:
    """Set a cell, with nothing in those that were left out before it."""
    row.extend([""] * (column - len(row)))
    row[column - 1] = cell


def unescape(text: str) -> str:
    """Put back the characters that XML cannot hold; those that no text can hold are left out."""
    if "_x" not in text:
        return text
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)).encode("utf-8", "ignore").decode().strip("\0"), text)


def _row_number(number_text: str | None, previous: int) -> int:
    """The number a row says of itself, if it can be: rows are in order."""
    if (
        number_text is not None
        and len(number_text) <= _MOST_DIGITS
        and number_text.isdecimal()
        and int(number_text) > previous
    ):
        return int(number_text)
    return previous + 1


class _Columns(dict[str, int]):
    """The number of the column with these letters: "A" is 1, "AB" is 28; there are no more than a sheet has."""

    def __missing__(self, letters: str) -> int:
        number = 0
        for letter in letters if _COLUMN.fullmatch(letters) else "":
            number = number * 26 + ord(letter) - 64
        if not 0 < number <= _LAST_COLUMN:
            raise ValueError(f"{letters[:20]!r} is not a column")
        self[letters] = number
        return number


_COLUMNS = _Columns()


def local(name: str) -> str:
    return name.rpartition(":")[2] if ":" in name else name


# What a cell shows, by its type; a shared string and a number are what most are, and have been looked at before.
_CELLS: Mapping[str, Callable[[str], str]] = {
    "str": unescape,
    "inlineStr": unescape,
    "e": lambda _error: "",
    "b": lambda value: "TRUE" if int(value) else "FALSE",
    "d": written_moment,
}
