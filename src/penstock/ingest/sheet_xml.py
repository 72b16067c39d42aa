"""What expat meets in a sheet and in the shared strings: kept no further than a cell and a row may go."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from string import digits

# openpyxl has no types.

_LAST_COLUMN = 16_384
_STRING_OVERHEAD = 64
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_COLUMN = re.compile("[A-Z]{1,3}")

Attributes = dict[str, str]


class StringReader:
    """Collects the shared strings; text of several runs is joined, the reading aids of Japanese are left out."""

    def __init__(self, longest: int) -> None:
        self.strings: list[str] = []
        self.held_bytes = 0
        self._kept_text = KeptText(longest)

    def start(self, name: str, _attributes: Attributes) -> None:
        if name == "si":
            self._kept_text.clear()
        self._kept_text.enter(name)

    def end(self, name: str) -> None:
        self._kept_text.leave(name)
        if name == "si":
            string = unescape(self._kept_text.value())
            self.strings.append(string)
            self.held_bytes += len(string) + _STRING_OVERHEAD

    def text(self, data: str) -> None:
        self._kept_text.add(data)


class SheetReader:
    """Collects the rows of a sheet as the parser comes by them."""

    def __init__(self, as_text: Callable[[str, str, str], str], columns: int, longest: int) -> None:
        self._as_text = as_text
        self._columns = columns
        self._kept_text = KeptText(longest)
        self._rows: list[list[str]] = []
        self._row: list[str] = []
        self._column = 0
        self._kind = self._style = ""

    def take_rows(self) -> list[list[str]]:
        """Hand over the rows that are complete."""
        rows, self._rows = self._rows, []
        return rows

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "c":
            reference = attributes.get("r")
            self._column = _column(reference.rstrip(digits)) if reference else self._column + 1
            self._kind = attributes.get("t", "n")
            self._style = attributes.get("s", "0")
            self._kept_text.clear()
        elif name == "row":
            self._row = []
            self._column = 0
        else:
            self._kept_text.enter(name)

    def end(self, name: str) -> None:
        if name == "c":
            value = self._kept_text.value()
            if value and (text := self._as_text(self._kind, self._style, value)):
                self._put(text)
        elif name == "row":
            if any(map(str.strip, self._row)):
                self._rows.append(self._row)
        else:
            self._kept_text.leave(name)

    def text(self, data: str) -> None:
        self._kept_text.add(data)

    def _put(self, text: str) -> None:
        # Whatever lies further out, one cell too many is enough to tell.
        column = min(self._column, self._columns + 1)
        self._row.extend([""] * (column - len(self._row)))
        self._row[column - 1] = text


class KeptText:
    """The text inside <v> and <t>, kept up to one character beyond what a cell may hold."""

    def __init__(self, longest: int) -> None:
        self._room_for = longest + 1
        self.clear()

    def clear(self) -> None:
        self._parts: list[str] = []
        self._room = self._room_for
        self._is_wanted = False
        self._aside = False

    def enter(self, name: str) -> None:
        self._aside = self._aside or name == "rPh"
        self._is_wanted = name in {"v", "t"} and not self._aside

    def leave(self, name: str) -> None:
        self._is_wanted = False
        self._aside = self._aside and name != "rPh"

    def add(self, data: str) -> None:
        if self._is_wanted and self._room > 0:
            self._parts.append(data[: self._room])
            self._room -= len(data)

    def value(self) -> str:
        return "".join(self._parts)


def unescape(text: str) -> str:
    """Put back the characters that XML cannot hold; those that no text can hold are left out."""
    if "_x" not in text:
        return text
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)).encode("utf-8", "ignore").decode().strip("\0"), text)


@cache
def _column(letters: str) -> int:
    """Give the number of the column with these letters: "A" is 1, "AB" is 28."""
    number = 0
    for letter in letters if _COLUMN.fullmatch(letters) else "":
        number = number * 26 + ord(letter) - 64
    if not 0 < number <= _LAST_COLUMN:
        raise ValueError(f"{letters[:20]!r} is not a column")
    return number


def local(name: str) -> str:
    return name.rpartition(":")[2] if ":" in name else name
