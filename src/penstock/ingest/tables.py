"""What a table is, whatever file it came from: a shape found out once, and rows read one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

ROW_TOO_LONG = "ROW_TOO_LONG"
CELL_TOO_LONG = "CELL_TOO_LONG"
ROW_UNREADABLE = "ROW_UNREADABLE"

NO_DELIMITER = "\x1f"
"""The delimiter of a list of one column: no text holds it."""


class Row(NamedTuple):
    """One row of a table: its number in the file, and its cells in the order of the headers.

    The number is the one that a spreadsheet shows: the headers and blank rows count, so the first row is 2 as a rule. A
    blank row is left out. A row that cannot be used has no cells, but it is there, so nothing is lost.
    """

    number: int
    cells: list[str]
    problem: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class TableShape:
    """What was found out about a table by looking at its beginning; small JSON, kept with the job."""

    format: str
    headers: tuple[str, ...]
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    sheet: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the shape as plain JSON, for keeping it with the job."""
        return {
            "format": self.format,
            "headers": list(self.headers),
            "encoding": self.encoding,
            "delimiter": self.delimiter,
            "quote": self.quote,
            "sheet": self.sheet,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TableShape:
        """Read a shape back from what `to_json` gave."""
        return cls(
            format=value["format"],
            headers=tuple(value["headers"]),
            encoding=value.get("encoding"),
            delimiter=value.get("delimiter"),
            quote=value.get("quote"),
            sheet=value.get("sheet"),
        )


class Table(Protocol):
    """A table that can be read from any row on, as often as needed."""

    @property
    def shape(self) -> TableShape:
        """What was found out about the table."""
        ...

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Give the rows behind the first `after` of them, in order."""
        ...


def clean_headers(cells: Iterable[str]) -> tuple[str, ...]:
    """Make headers a person and a program can use: trimmed, never empty, each one different."""
    headers: list[str] = []
    used_headers: set[str] = set()
    for position, cell in enumerate(cells, start=1):
        base = " ".join(cell.split()) or f"column {position}"
        header, copy = base, 2
        while header in used_headers:
            header, copy = f"{base} {copy}", copy + 1
        used_headers.add(header)
        headers.append(header)
    return tuple(headers)
