"""A workbook reads back as it was given, has no formula, and comes in pieces as its rows are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.exports import workbook
from penstock.exports.cells import sheet_cell
from penstock.exports.workbook import sheet_name, workbook_chunks
from penstock.ingest import FileType, TableLimits, detect_type, look_at_file, open_table
from tests.unit.exports.test_cells import ANY_TEXT, VALUES
from tests.workbooks import read_workbook, sheets_of

HOSTILE = [
    "=1+1",
    "@SUM(A1)",
    "+1",
    "-1",
    "{=1}",
    '=HYPERLINK("http://a.example")',
    "https://a.example",
    "mailto:a@b.c",
]


def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], **other: Any) -> None:
    path.write_bytes(b"".join(workbook_chunks(columns, rows, **other)))


def read(path: Path) -> dict[str, list[list[Any]]]:
    return read_workbook(path)


def as_read(value: Any) -> Any:
    """What the documented changes make of a value; an empty text and NaN are an empty cell."""
    match sheet_cell(value):
        case "" | None:
            return None
        case float() as number if math.isnan(number):
            return None
        case float() as number if math.isinf(number):
            return "inf" if number > 0 else "-inf"
        case other:
            return other


def test_kinds_of_values_and_the_header(tmp_path: Path) -> None:
    file = tmp_path / "a.xlsx"
    row: list[Any] = ["text", 7, -2.5, True, None, "4012345678901", "007", ["x", 1]]
    write(file, list("abcdefgh"), [row], sheet="Tea")
    assert read(file) == {"Tea": [list("abcdefgh"), ["text", 7, -2.5, True, None, "4012345678901", "007", '["x",1]']]}
    [sheet] = sheets_of(file).values()
    [pane] = sheet.iterfind(".//{*}pane")
    assert (pane.get("topLeftCell"), pane.get("state")) == ("A2", "frozen")
    [header, cells] = sheet.iterfind(".//{*}row")
    assert {cell.get("s") for cell in header} == {"1"}
    with ZipFile(file) as book:
        styles = ET.fromstring(book.read("xl/styles.xml"))
    [_, bold] = styles.iterfind(".//{*}cellXfs/{*}xf")
    assert styles.findall(".//{*}font")[int(bold.get("fontId", "0"))].find("{*}b") is not None
    inline = "inlineStr"
    assert [cell.get("t", "n") for cell in cells] == [inline, "n", "n", "b", inline, inline, inline]


def test_nothing_hostile_is_a_formula_or_a_link(tmp_path: Path) -> None:
    file = tmp_path / "a.xlsx"
    write(file, HOSTILE, [HOSTILE, HOSTILE])
    with ZipFile(file) as book:
        inside = b"".join(book.read(name) for name in book.namelist() if name.startswith("xl/worksheets"))
    assert b"=1+1" in inside
    assert b"<f>" not in inside
    assert b"<f " not in inside
    assert b"hyperlink" not in inside.replace(b"=HYPERLINK", b"")
    assert read(file) == {"Items": [HOSTILE, HOSTILE, HOSTILE]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), max_size=6), st.lists(ANY_TEXT, min_size=3, max_size=3))
def test_any_table_reads_back(tmp_path: Path, rows: list[list[Any]], columns: list[str]) -> None:
    file = tmp_path / "a.xlsx"
    write(file, columns, rows)
    (found,) = read(file).values()
    seen = found
    expected = [[as_read(value) for value in row] for row in [columns, *rows]]
    # What is empty at the end is left out.
    for row in range(len(expected)):
        for column in range(3):
            value = seen[row][column] if row < len(seen) and column < len(seen[row]) else None
            assert value == expected[row][column]
            assert isinstance(value, bool) == isinstance(expected[row][column], bool)


def test_two_columns_of_one_name_are_two_columns(tmp_path: Path) -> None:
    write(tmp_path / "a.xlsx", ["a", "a"], [[1, 2]])
    assert read(tmp_path / "a.xlsx") == {"Items": [["a", "a"], [1, 2]]}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_what_a_sheet_cannot_hold_goes_to_the_next(tmp_path: Path, monkeypatch: Any, count: int) -> None:
    monkeypatch.setattr(workbook, "ROWS_OF_A_SHEET", 3)
    file = tmp_path / "a.xlsx"
    write(file, ["no", "text"], ([number, "=x"] for number in range(count)), sheet="All")
    rows = [[number, "=x"] for number in range(count)]
    parts = [rows[at : at + 2] for at in range(0, count, 2)] or [[]]
    names = ["All", "All (2)", "All (3)"]
    found = read(file)
    assert list(found.items()) == [(names[at], [["no", "text"], *part]) for at, part in enumerate(parts)]
    views = [next(sheet.iterfind(".//{*}sheetView")) for sheet in sheets_of(file).values()]
    assert [view.get("tabSelected") for view in views] == ["1"] + [None] * (len(parts) - 1)


def test_the_first_bytes_come_before_the_first_row_and_no_row_before_it_is_needed() -> None:
    asked: list[int] = []

    def rows() -> Iterator[list[Any]]:
        for number in range(100_000):
            asked.append(number)
            yield [number, "x" * 1_000]

    chunks = workbook_chunks(["no", "text"], rows())
    assert next(chunks).startswith(b"PK")
    assert asked == []
    assert next(chunks)
    assert 0 < len(asked) < 1_000
    chunks.close()
    before = len(asked)
    assert next(chunks, None) is None
    assert len(asked) == before


def test_a_sheet_that_grows_too_large_is_followed_by_another(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(workbook, "BYTES_OF_A_SHEET", 10_000)
    monkeypatch.setattr(workbook, "_PIECE", 1_000)
    file = tmp_path / "a.xlsx"
    write(file, ["text"], ([f"{number} {'x' * 900}"] for number in range(30)))
    sheets = list(read(file).values())
    assert [len(sheet) - 1 for sheet in sheets] == [12, 12, 6]
    assert [row[0].split()[0] for sheet in sheets for row in sheet[1:]] == [str(number) for number in range(30)]


def test_texts_are_numbers_where_the_column_says_so_and_nothing_is_lost_by_it(tmp_path: Path) -> None:
    file = tmp_path / "a.xlsx"
    texts = ["7.35", "12.50", "0", "-3", "007", "1e5", "1,5", "", "1234567890123456", "0.1234567890123456", "n/a", "٣"]
    write(file, ["gtin", "price"], [[text, text] for text in texts], numbers=["price"])
    [[_, *rows]] = read(file).values()
    assert [row[0] for row in rows] == [text or None for text in texts]
    assert [row[1] for row in rows[:4]] == [7.35, 12.5, 0, -3]
    assert [row[1] for row in rows[4:]] == [text or None for text in texts[4:]]


def test_what_names_the_sheets_comes_last_and_every_part_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(workbook, "ROWS_OF_A_SHEET", 2)
    file = tmp_path / "a.xlsx"
    write(file, ["no"], [[1], [2]])
    with ZipFile(file) as book:
        assert book.testzip() is None
        assert book.namelist() == [
            "_rels/.rels", "xl/styles.xml", "xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml", "xl/workbook.xml",
            "xl/_rels/workbook.xml.rels", "[Content_Types].xml",
        ]  # fmt: skip
        assert all(entry.extra == b"" for entry in book.infolist()), "Excel calls a part in ZIP64 damaged"
        types = book.read("[Content_Types].xml").decode()
    assert all(f"/xl/worksheets/sheet{number}.xml" in types for number in (1, 2))


def test_our_own_reader_takes_it_back(tmp_path: Path) -> None:
    file = tmp_path / "a.xlsx"
    rows: list[list[Any]] = [["007", " a <b> & c ", "7.50"], ["=1+1", "two\nlines", None]]
    write(file, ["sku", "title", "price"], rows, numbers=["price"])
    assert detect_type(file, "a.xlsx") is FileType.XLSX
    limits = TableLimits()
    shape = look_at_file(file, "a.xlsx", limits).shape
    assert shape is not None
    table = open_table(file, shape, limits)
    assert table.shape.headers == ("sku", "title", "price")
    assert [cells for _, cells, _, _ in table.rows(0)] == [["007", " a <b> & c ", "7.5"], ["=1+1", "two\nlines", ""]]


def test_a_row_of_another_length_is_a_mistake_that_shows() -> None:
    with pytest.raises(ValueError, match="shorter"):
        list(workbook_chunks(["a", "b"], [[1]]))


@pytest.mark.parametrize(("count", "code"), [(0, "NO_COLUMNS"), (16_385, "TOO_MANY_COLUMNS")])
def test_columns_that_no_sheet_can_have_are_refused(count: int, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        workbook_chunks(["x"] * count, [])
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("wanted", "name"), [("", "Items"), ("'a'", "a"), ("[x]:*?/\\", "_x______"), ("é" * 31, "é" * 31), ("a\nb", "a b")]
)
def test_any_name_becomes_one_that_excel_takes(tmp_path: Path, wanted: str, name: str) -> None:
    assert sheet_name(wanted) == name
    write(tmp_path / "a.xlsx", ["a"], [], sheet=wanted)
    assert list(read(tmp_path / "a.xlsx")) == [name]
