"""Rows as an Excel workbook, a piece at a time, in the same memory for any number of them.

A workbook is a ZIP of XML files, and nothing in it has to be known before the rows are: the sheets come first, each
compressed as it is written, and what names them comes behind the last. Texts stand in their cells, not in a table of
all texts, which would have to be complete before the first row. So the first bytes go out before the first row is read,
and who stops asking stops the reading.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from html import escape
from zipfile import ZIP_DEFLATED, ZipFile

from penstock.errors import InvalidInput
from penstock.exports.cells import DIGITS_OF_A_NUMBER, Value, sheet_cell, sheet_row

ROWS_OF_A_SHEET = 1_048_576
COLUMNS_OF_A_SHEET = 16_384
BYTES_OF_A_SHEET = 1536 * 1024 * 1024
"""Beyond 2 GiB a part of a ZIP needs a form that Excel calls damaged."""
_LENGTH_OF_A_NAME = 31
_NOT_IN_A_NAME = re.compile(r"[\[\]:*?/\\]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_SPECIAL = re.compile(r"[&<>\n\t]|_x|^ | $").search
_ESCAPE_SIGN = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_PIECE = 256 * 1024
"""Characters of XML that are compressed together."""
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_BOLD = 1
"""The number of the header's style in :data:`_STYLES`."""
_PLAIN = 'numFmtId="0" fillId="0" borderId="0"'
_FONT = '<sz val="11"/><name val="Calibri"/>'
_STYLES = (
    f'{_HEAD}<styleSheet xmlns="{_MAIN}">'
    f'<fonts count="2"><font>{_FONT}</font><font><b/>{_FONT}</font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    f'<cellStyleXfs count="1"><xf {_PLAIN} fontId="0"/></cellStyleXfs>'
    f'<cellXfs count="2"><xf {_PLAIN} fontId="0" xfId="0"/><xf {_PLAIN} fontId="1" xfId="0" applyFont="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
_ROOT = (
    f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
)


def workbook_chunks(
    columns: Sequence[str],
    rows: Iterable[Sequence[Value]],
    *,
    sheet: str = "Items",
    numbers: Collection[str] = (),
) -> Generator[bytes]:
    """The header and the rows as a workbook, in pieces, read as they are asked for.

    Rows beyond what a sheet can have go to further sheets, each with the header. Every row has as many values as there
    are columns. In the columns named in ``numbers`` a text that is a plain number is one. NaN is an empty cell, as
    Excel has no such number.
    """
    if not 0 < len(columns) <= COLUMNS_OF_A_SHEET:
        message = f"A sheet has 1 to {COLUMNS_OF_A_SHEET} columns, not {len(columns)}: choose other columns, or CSV"
        raise InvalidInput(message, field="columns", code="TOO_MANY_COLUMNS" if columns else "NO_COLUMNS")
    return _pieces(_SheetXml(columns, numbers), iter(rows), sheet)


def sheet_name(name: str, number: int = 1) -> str:
    """A name Excel accepts, with the number of a further sheet.

    >>> sheet_name("a/b"), sheet_name("a" * 40, 2)
    ('a_b', 'aaaaaaaaaaaaaaaaaaaaaaaaaaa (2)')
    """
    last = f" ({number})" if number > 1 else ""
    clean = _NOT_IN_A_NAME.sub("_", str(sheet_cell(name))).replace("\n", " ").strip(" '\t")
    return (clean or "Items")[: _LENGTH_OF_A_NAME - len(last)].rstrip(" '") + last


def _pieces(xml: _SheetXml, rows: Iterator[Sequence[Value]], sheet: str) -> Generator[bytes]:
    output = _Output()
    sheets = 0
    with ZipFile(output, "w", ZIP_DEFLATED, compresslevel=1) as book:  # type: ignore[call-overload]  # it needs no more
        book.writestr("_rels/.rels", _ROOT)
        book.writestr("xl/styles.xml", _STYLES)
        yield output.take()
        row = next(rows, None)
        while row is not None or not sheets:
            sheets += 1
            with book.open(f"xl/worksheets/sheet{sheets}.xml", "w") as part:
                part.write(xml.begin(is_first=sheets == 1))
                size, last = 0, 1
                while row is not None and last < ROWS_OF_A_SHEET and size < BYTES_OF_A_SHEET:
                    texts, length = [], 0
                    while row is not None and last < ROWS_OF_A_SHEET and length < _PIECE:
                        last += 1
                        text = xml.row(last, row)
                        length += len(text)
                        texts.append(text)
                        row = next(rows, None)
                    size += part.write("".join(texts).encode())
                    if piece := output.take():
                        yield piece
                part.write(b"</sheetData></worksheet>")
            yield output.take()
        names = [sheet_name(sheet, number) for number in range(1, sheets + 1)]
        book.writestr("xl/workbook.xml", _workbook(names))
        book.writestr("xl/_rels/workbook.xml.rels", _relations(sheets))
        book.writestr("[Content_Types].xml", _content_types(sheets))
    yield output.take()


class _Output:
    """Takes what the ZIP writes, until somebody takes it from here. It cannot seek: the ZIP need not look back."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Nothing is kept back."""

    def take(self) -> bytes:
        piece = b"".join(self._pieces)
        self._pieces.clear()
        return piece


class _SheetXml:
    """Rows as the XML of a sheet."""

    def __init__(self, columns: Sequence[str], numbers: Collection[str]) -> None:
        self._columns = columns
        self._letters = [_letters(index) for index in range(len(columns))]
        self._numbers = [index for index, name in enumerate(columns) if name in numbers]

    def begin(self, *, is_first: bool) -> bytes:
        """All before the rows, and the header. The first sheet is the one that is open when the workbook is opened."""
        selection = ' tabSelected="1"' if is_first else ""
        cells = "".join(
            f'<c r="{letter}1" t="inlineStr" s="{_BOLD}">{_inline(text)}</c>'
            for letter, name in zip(self._letters, self._columns, strict=True)
            if (text := str(sheet_cell(name)))
        )
        return (
            f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView{selection} workbookViewId="0"><pane ySplit="1" '
            'topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>'
            f'<row r="1">{cells}</row>'
        ).encode()

    def row(self, number: int, row: Sequence[Value]) -> str:
        """One row. A million of them are made here: hence one expression for what most cells are."""
        values = sheet_row(row)
        for index in self._numbers:
            text = values[index]
            if type(text) is str and _NUMBER.fullmatch(text) and sum(map(str.isdigit, text)) <= DIGITS_OF_A_NUMBER:
                values[index] = _Number(text)
        cells = [
            ""
            if value is None or value == ""
            else f'<c r="{letter}{number}" t="inlineStr"><is><t>{value}</t></is></c>'
            if (kind := type(value)) is str and _SPECIAL(value) is None  # type: ignore[arg-type]
            else f'<c r="{letter}{number}"><v>{value}</v></c>'
            if kind is int or kind is _Number or (kind is float and value - value == 0.0)  # type: ignore[operator]
            else _rare_cell(letter, number, value)
            for letter, value in zip(self._letters, values, strict=True)
        ]
        if not cells[-1]:
            # Some readers take the last cell that is there for the last column of the row.
            cells[-1] = f'<c r="{self._letters[-1]}{number}"/>'
        return f'<row r="{number}">{"".join(cells)}</row>'


class _Number(str):
    """The text of a number, which is written as one."""

    __slots__ = ()


def _rare_cell(letter: str, number: int, value: str | float) -> str:
    if isinstance(value, str):
        return f'<c r="{letter}{number}" t="inlineStr">{_inline(value)}</c>'
    if isinstance(value, bool):
        return f'<c r="{letter}{number}" t="b"><v>{value:d}</v></c>'
    # A number that is none: Excel has no infinity, and nothing at all for NaN.
    return "" if value != value else f'<c r="{letter}{number}" t="inlineStr"><is><t>{value}</t></is></c>'


def _inline(text: str) -> str:
    """A text as it stands in a cell: blanks at its ends stay, and what Excel would read as an escape is none."""
    return f'<is><t xml:space="preserve">{escape(_ESCAPE_SIGN.sub("_x005F_", text), quote=False)}</t></is>'


def _letters(index: int) -> str:
    """The letters of a column.

    >>> _letters(0), _letters(25), _letters(26), _letters(16_383)
    ('A', 'Z', 'AA', 'XFD')
    """
    letters, rest = "", index + 1
    while rest:
        rest, digit = divmod(rest - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


def _workbook(names: Sequence[str]) -> str:
    sheets = "".join(
        f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>' for number, name in enumerate(names, 1)
    )
    return f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{sheets}</sheets></workbook>'


def _relations(sheets: int) -> str:
    parts = [
        f'Id="rId{n}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"' for n in range(1, sheets + 1)
    ]
    parts.append(f'Id="rId{sheets + 1}" Type="{_RELATIONS}/styles" Target="styles.xml"')
    entries = "".join(f"<Relationship {part}/>" for part in parts)
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{entries}</Relationships>'


def _content_types(sheets: int) -> str:
    parts = {"/xl/workbook.xml": "sheet.main", "/xl/styles.xml": "styles"}
    parts |= {f"/xl/worksheets/sheet{number}.xml": "worksheet" for number in range(1, sheets + 1)}
    entries = "".join(f'<Override PartName="{name}" ContentType="{_TYPE}.{kind}+xml"/>' for name, kind in parts.items())
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{entries}</Types>'
    )
