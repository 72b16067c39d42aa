"""Tables of delimited text (CSV and its relatives), read a row at a time at the speed of the csv module.

The csv module does the reading. What it does not do is done around it, a block of text at a time, so that an
ordinary row costs a few comparisons:

- A block without a quote has a record on each line. Splitting it is faster than the csv module, and rows that are
  not asked for need not even be split.
- Any other block is looked at once for what makes a row bad (bytes that are not text, a very long line). Only the
  rows of a block that has some of it are looked at one by one, and so are those of a block that may have a blank row or
  a guard before a formula.
- A quote that is never closed would swallow the rest of the file. `_Feed` keeps the text since the last complete
  record, about `RECORD_CHARACTERS` of it. When a record outgrows that, or the file ends inside it, its first line
  becomes one bad row, and reading starts again behind that line.
- Starting again may run into the next such quote. After a few times in the same block its lines are read one by
  one, so a file made of such lines still takes time in proportion to its size.

Rows have the numbers that a spreadsheet shows: each record counts, the headers and blank ones included. A blank one is
no row. Where the headers have no delimiter the table is a list of one column, whatever its rows hold.
"""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidInput, PayloadTooLarge
from penstock.formulas import may_be_guarded, unguard
from penstock.ingest import encodings
from penstock.ingest.limits import TableLimits
from penstock.ingest.tables import (
    CELL_TOO_LONG,
    NO_DELIMITER,
    ROW_TOO_LONG,
    ROW_UNREADABLE,
    Row,
    TableShape,
    clean_headers,
)

if TYPE_CHECKING:
    from _csv import Reader

RECORD_CHARACTERS = 1024 * 1024
"""A record that goes on for longer than this, line after line, is taken for a quote that was never closed."""

_SAMPLE_RECORDS = 1000
_REREADS = 3
_DELIMITERS = ("\t", ";", "|", ",")  # of two that fit equally, the one that text holds less often by chance
_SEPARATOR_LINE = re.compile(r'"?sep=([^"\r\n])"?(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
_SOMETHING = re.compile(r"[^\s,;|\"']")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\udcff]")
_MARK = re.compile("[\x00\ud800-\udfff]")
_KNOWN_BINARY = (b"PK\x03\x04", b"%PDF-", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"\xd0\xcf\x11\xe0")


def look_at(
    path: Path, limits: TableLimits, *, encoding: str | None = None, delimiter: str | None = None
) -> TableShape:
    """Find out how a file is to be read, from its beginning; what the caller says wins over what is found."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in "\"'\r\n\0"):
        raise _refusal(
            "DELIMITER_UNKNOWN", f"The delimiter {delimiter[:20]!r} cannot be one. Name one character.", "delimiter"
        )
    with path.open("rb") as file:
        sample = file.read(encodings.BLOCK_BYTES)
        whole = not file.read(1)
    codec = encodings.choose_encoding(sample, whole=whole, declared_encoding=encoding)
    text = encodings.decode_sample(sample, codec, whole=whole)
    if sample.startswith(_KNOWN_BINARY) or len(_CONTROL.findall(text)) > max(8, len(text) // 20):
        raise _refusal("NOT_A_TABLE", "The file is not text. Save the table as CSV or XLSX and upload it again.")
    if separator := _SEPARATOR_LINE.match(text):
        text = text[separator.end() :]
        delimiter = delimiter or separator[1]
    if _SOMETHING.search(text) is None:
        raise _refusal("TABLE_EMPTY", "The file is empty. It needs a line of headers and a line for each row.")
    found_delimiter, quote, records = _dialect(text, whole, delimiter)
    if not records:
        raise _refusal("NOT_A_TABLE", "The headers do not end. Look for a quote in the first line that is not closed.")
    header = records[0]
    if len(header) > limits.columns:
        message = f"The table has {len(header)} columns and may have {limits.columns}. Leave some out."
        raise _refusal("TOO_MANY_COLUMNS", message)
    if max(map(len, header)) > limits.cell_characters:
        raise _refusal("CELL_TOO_LONG", f"A header is longer than {limits.cell_characters} characters. Shorten it.")
    headers = clean_headers(_MARK.sub("\ufffd", cell if quote == "'" else unguard(cell)) for cell in header)
    return TableShape(format="delimited", headers=headers, encoding=codec, delimiter=found_delimiter, quote=quote)


class Delimited:
    """A file of delimited text whose shape is known."""

    def __init__(self, path: Path, shape: TableShape, limits: TableLimits) -> None:
        self.shape = shape
        self._path = path
        self._limits = limits

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Give the rows behind row number `after`, in order; a row that cannot be used says why."""
        max_rows, width, make = self._limits.rows, len(self.shape.headers), tuple.__new__
        feed = _Feed(self._path, self.shape, self._limits)
        count = -1  # of the rows so far: the headers are none
        offset = 1  # from there to the row's number, as a spreadsheet shows it
        while not feed.has_ended:
            for lines, records in feed.plain_blocks():
                is_sure = lines is not None
                if lines is not None and count + lines <= after and count + lines <= max_rows:
                    count += lines
                    continue
                for cells in records:
                    if len(cells) == width and count < max_rows and is_sure:
                        count += 1
                        if count > after:
                            yield make(Row, (count + offset, cells, None, None))
                    elif is_blank(cells):
                        offset += 1
                    else:
                        count = self._count(count)
                        if count > after:
                            yield self._judge(count + offset, cells)
            reader = feed.start()
            try:
                for cells in reader:
                    line = reader.line_num
                    if len(cells) == width and line == feed.line + 1 and count < max_rows and not feed.careful:
                        feed.line = line
                        count += 1
                        if count > after:
                            yield make(Row, (count + offset, cells, None, None))
                        continue
                    if cells and feed.has_ended:
                        raise _Unclosed
                    feed.line = line
                    if is_blank(cells):
                        offset += 1
                        continue
                    count = self._count(count)
                    if count > after:
                        yield self._judge(count + offset, cells)
            except (_Unclosed, csv.Error):
                for record in feed.read_again():
                    if record is not None and is_blank(record):
                        offset += 1
                        continue
                    count = self._count(count)
                    if count > after:
                        yield self._judge(count + offset, record)

    def _count(self, count: int) -> int:
        if count >= self._limits.rows:
            message = f"The table has more than {self._limits.rows} rows. Split it into smaller files."
            raise PayloadTooLarge(message, field="file", code="TOO_MANY_ROWS")
        return count + 1

    def _judge(self, number: int, cells: list[str] | None) -> Row:
        """Make a row of a record that is not plainly good; None is a line with a quote that is never closed."""
        width, longest = len(self.shape.headers), self._limits.cell_characters
        if cells is None:
            return Row(number, [], "A quote in this row is never closed. Close it or take it out.", ROW_UNREADABLE)
        text = "".join(cells)
        if encodings.has_marks(text):
            return Row(number, [], self._explain_marks(text), ROW_UNREADABLE)
        if any(cells[width:]):
            problem = f"The row has {len(cells)} cells and there are {width} headers. Look for an unquoted delimiter."
            return Row(number, [], problem, ROW_TOO_LONG)
        if len(text) > longest:
            for header, cell in zip(self.shape.headers, cells, strict=False):
                if len(cell) > longest:
                    problem = f"The cell {header[:60]!r} has {len(cell)} characters and may have {longest}. Shorten it."
                    return Row(number, [], problem, CELL_TOO_LONG)
        if self.shape.quote != "'" and may_be_guarded(text):
            cells = [unguard(cell) for cell in cells]
        return Row(number, cells[:width] + [""] * (width - len(cells)))

    def _explain_marks(self, text: str) -> str:
        if encodings.OVERLONG in text:
            return f"The row has a line of more than {encodings.LINE_CHARACTERS} characters. Shorten it."
        if "\0" in text:
            return "The row holds a zero byte, which is not text. Save the file as text and upload it again."
        encoding = self.shape.encoding
        return f"The row holds bytes that are not text in {encoding}. Name the file's encoding, or mend the row."


class _Unclosed(Exception):
    """A record has outgrown every bound, or the file ended inside it."""


@dataclass(slots=True)
class _Block:
    """A piece of text that ends where a line ends."""

    text: str
    line: int = 0
    rereads: int = 0


class _Feed:
    """Gives lines to the csv reader, and keeps those of the record in hand, to be able to go back.

    The reader of rows sets `line` after each record to the number of lines read by then. `careful` says that the
    record may hold something a row cannot keep; `ended`, that the reader asked for more than the file has.
    """

    def __init__(self, path: Path, shape: TableShape, limits: TableLimits) -> None:
        self.line = 0
        self.careful = False
        self.has_ended = False
        self._options = _options(shape.delimiter or ",", shape.quote)
        self._blank_row = _blank_row(shape.delimiter or ",", shape.quote)
        self._quote = shape.quote
        self._longest = limits.cell_characters
        self._source = encodings.read_text(path, shape.encoding or "utf-8")
        self._waiting: deque[_Block] = deque()
        self._kept_blocks: deque[_Block] = deque()
        if (first := next(self._source, None)) is not None:
            separator = _SEPARATOR_LINE.match(first)
            self._waiting.append(_Block(first[separator.end() :] if separator else first))
        if csv.field_size_limit() < 2 * RECORD_CHARACTERS:
            csv.field_size_limit(2 * RECORD_CHARACTERS)  # the bound here is on records; it is only ever raised

    def plain_blocks(self) -> Iterator[tuple[int | None, Iterable[list[str]]]]:
        """Give the blocks from here on in which each line is a record: how many there are, and their cells.

        Where some may be no rows, or not what they seem, nobody knows how many there are (None).
        """
        delimiter = self._options["delimiter"]
        while (block := self._next()) is not None:
            count = self._plain_lines(block)
            if count is None:
                self._waiting.appendleft(block)
                return
            yield None if self._needs_a_look(block.text) else count, _split(block.text, delimiter)

    def start(self) -> Reader:
        """Give a reader of the records from here on."""
        self.line, self.careful, self.has_ended = 0, False, False
        self._kept_blocks.clear()
        self._reader: Reader = csv.reader(chain.from_iterable(self._pieces()), **self._options)
        return self._reader

    def read_again(self) -> Iterator[list[str] | None]:
        """Go back to the record that did not end: its first line is bad (None), behind it reading starts again."""
        first = self._kept_blocks.popleft()
        lines = list(io.StringIO(first.text, newline=""))[self.line - first.line + 1 :]
        for block in self._kept_blocks:
            block.rereads += 1
        self._waiting.extendleft(reversed(self._kept_blocks))
        self.has_ended = False
        yield None
        if first.rereads < _REREADS:
            self._waiting.appendleft(_Block("".join(lines), rereads=first.rereads + 1))
            return
        for line in lines:
            records = list(csv.reader([line, "\n"], **self._options))
            yield records[0] if records[-1] == [] else None

    def _next(self) -> _Block | None:
        if self._waiting:
            return self._waiting.popleft()
        text = next(self._source, None)
        return None if text is None else _Block(text)

    def _is_suspicious(self, text: str) -> bool:
        return encodings.has_marks(text) or _may_have_long_line(text, self._longest)

    def _needs_a_look(self, text: str) -> bool:
        return self._blank_row.search(text) is not None or may_be_guarded(text)

    def _plain_lines(self, block: _Block) -> int | None:
        count = _plain_lines(block.text, self._quote)
        return None if count is None or self._is_suspicious(block.text) else count

    def _pieces(self) -> Iterator[Iterable[str]]:
        while (block := self._next()) is not None:
            block.line = self._reader.line_num
            if self.line >= block.line:  # the last record was complete
                self._kept_blocks.clear()
                if self._plain_lines(block) is not None:
                    self._waiting.appendleft(block)
                    return
            while len(self._kept_blocks) > 1 and self._kept_blocks[1].line <= self.line:
                self._kept_blocks.popleft()
            self._kept_blocks.append(block)
            # The record in hand began somewhere in the first block kept, and goes on at least to this one.
            if (
                sum(len(kept_block.text) for kept_block in islice(self._kept_blocks, 1, len(self._kept_blocks) - 1))
                > RECORD_CHARACTERS
            ):
                raise _Unclosed
            # A record of several lines is looked at anyway; one of a single line is all in this block.
            self.careful = self._is_suspicious(block.text) or self._needs_a_look(block.text)
            yield io.StringIO(block.text, newline="")
        # An empty line behind the end: an empty record if the last one was complete, else it belongs to that one.
        self.careful = self.has_ended = True
        yield ("\n",)


def _refusal(code: str, message: str, field: str = "file") -> InvalidInput:
    return InvalidInput(message, field=field, code=code)


def is_blank(cells: list[str]) -> bool:
    """Is there nothing in a row, or nothing but blanks?"""
    return not any(map(str.strip, cells))


def _blank_row(delimiter: str, quote: str | None) -> re.Pattern[str]:
    """What a row looks like in which there may be nothing: a line of blanks, delimiters and quotes, or the last one."""
    nothing = rf"(?:[^\S\r\n]|[{re.escape(delimiter + (quote or ''))}])"
    return re.compile(rf"(?:\A|\n|\r(?!\n)){nothing}*+(?:[\r\n]|(?<=[^\r\n])\Z)")


def _options(delimiter: str, quote: str | None) -> dict[str, Any]:
    if quote is None:
        return {"delimiter": delimiter, "quoting": csv.QUOTE_NONE, "quotechar": None}
    return {"delimiter": delimiter, "quotechar": quote}


def _plain_lines(text: str, quote: str | None) -> int | None:
    """Count the records of a block in which each line is one, quickly; None if that is not sure."""
    ends = text.count("\n")
    if (quote and quote in text) or not text.endswith("\n") or text[0] in "\r\n":
        return None
    if "\r" not in text:
        return ends if "\n\n" not in text else None
    return ends if text.count("\r") == ends == text.count("\r\n") and "\n\r" not in text else None


def _split(text: str, delimiter: str) -> Iterator[list[str]]:
    """Give the cells of a block in which each line is a record; nothing is done for one that is passed over."""
    lines = text.split("\r\n" if "\r" in text else "\n")
    lines.pop()  # what is behind the last line end: nothing
    for line in lines:
        yield line.split(delimiter)


def _may_have_long_line(text: str, longest: int) -> bool:
    """Say whether a line may be longer than that: it is not if a line ends in each stretch of half the length."""
    half = longest // 2
    return half < 100 or any(
        text.find("\n", start, start + half) < 0 and text.find("\r", start, start + half) < 0
        for start in range(0, len(text), half)
    )


def _dialect(text: str, whole: bool, declared_delimiter: str | None) -> tuple[str, str | None, list[list[str]]]:
    """Choose the delimiter and the quote with which most records have as many cells as the headers."""
    best: tuple[float, int] = (-1.0, 0)
    best_choice: tuple[str, str | None, list[list[str]]] = (declared_delimiter or ",", '"', [])
    for quote in ('"', "'", None):
        for delimiter in (declared_delimiter,) if declared_delimiter else _DELIMITERS:
            records, is_unclosed = _sample_records(text, whole, delimiter, quote)
            if not records or (len(records[0]) == 1 and not declared_delimiter):
                continue
            width = len(records[0])
            fit = sum(len(record) == width for record in records) / len(records)
            if quote == "'" and not _header_is_wrapped(text, delimiter, width):
                continue
            if quote is None and (fit < 1 or best[0] > 0 or len(records) < 2 or _any_wrapped(records)):
                continue  # reading quotes as text is for files that do not close them and never use them as quotes
            fit = 0.0 if is_unclosed else fit
            if quote == "'" or (fit, width) > best:
                best, best_choice = (fit, width), (delimiter, quote, records)
    if not best_choice[2]:  # one column
        delimiter = declared_delimiter or NO_DELIMITER
        return delimiter, '"', _sample_records(text, whole, delimiter, '"')[0]
    return best_choice


def _header_is_wrapped(text: str, delimiter: str, width: int) -> bool:
    """Say whether the file quotes with apostrophes: all its headers are wrapped in them, and it has no other quote."""
    line = next(line for line in text.splitlines() if line.strip(f"{delimiter} \t"))
    cells = line.split(delimiter)
    is_wrapped = all(len(cell) > 2 and cell[0] == cell[-1] == "'" for cell in cells)
    return is_wrapped and len(cells) == width and '"' not in text


def _any_wrapped(records: list[list[str]]) -> bool:
    return any(len(cell) > 1 and cell[0] == cell[-1] == '"' for record in records for cell in record)


def _sample_records(text: str, whole: bool, delimiter: str, quote: str | None) -> tuple[list[list[str]], bool]:
    """Read the complete records of the sample, and say whether the file ends inside a quote."""
    records: list[list[str]] = []
    last: list[str] = []
    reader = csv.reader(chain(io.StringIO(text, newline=""), ("\n",)), **_options(delimiter, quote))
    try:
        for last in reader:
            if not is_blank(last):
                records.append(last)
            if len(records) > _SAMPLE_RECORDS:
                return records, False
    except csv.Error:
        return records, True
    if whole:
        return (records[:-1], True) if last else (records, False)
    return records[:-1], False  # the last one is cut off by the end of the sample
