"""A workbook reads back as it was given, has no formula, and is there only when it is whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import openpyxl  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape  # type: ignore[import-untyped]

from penstock.errors import InvalidInput
from penstock.exports import workbook
from penstock.exports.cells import sheet_cell
from penstock.exports.workbook import sheet_name, write_workbook
from tests.unit.exports.test_cells import ANY_TEXT, VALUES

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


def read(path: Path) -> dict[str, list[list[Any]]]:
    book = openpyxl.load_workbook(path)
    return {sheet.title: [[cell.value for cell in row] for row in sheet.iter_rows()] for sheet in book.worksheets}


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
    assert write_workbook(file, list("abcdefgh"), [row], sheet="Tea") == 1
    assert read(file) == {"Tea": [list("abcdefgh"), ["text", 7, -2.5, True, None, "4012345678901", "007", '["x",1]']]}
    sheet = openpyxl.load_workbook(file).worksheets[0]
    assert sheet.freeze_panes == "A2"
    assert sheet["A1"].font.b
    assert [cell.data_type for cell in sheet[2]] == ["s", "n", "n", "b", "n", "s", "s", "s"]


def test_nothing_hostile_is_a_formula_or_a_link(tmp_path: Path) -> None:
    file = tmp_path / "a.xlsx"
    write_workbook(file, HOSTILE, [HOSTILE, HOSTILE])
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
    assert write_workbook(file, columns, rows) == len(rows)
    (found,) = read(file).values()
    seen = [[unescape(value) if isinstance(value, str) else value for value in row] for row in found]
    expected = [[as_read(value) for value in row] for row in [columns, *rows]]
    # openpyxl leaves out what is empty at the end.
    for row in range(len(expected)):
        for column in range(3):
            value = seen[row][column] if row < len(seen) and column < len(seen[row]) else None
            assert value == expected[row][column]
            assert isinstance(value, bool) == isinstance(expected[row][column], bool)


def test_two_columns_of_one_name_are_two_columns(tmp_path: Path) -> None:
    write_workbook(tmp_path / "a.xlsx", ["a", "a"], [[1, 2]])
    assert read(tmp_path / "a.xlsx") == {"Items": [["a", "a"], [1, 2]]}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_what_a_sheet_cannot_hold_goes_to_the_next(tmp_path: Path, monkeypatch: Any, count: int) -> None:
    monkeypatch.setattr(workbook, "ROWS_OF_A_SHEET", 3)
    file = tmp_path / "a.xlsx"
    assert write_workbook(file, ["no", "text"], ([number, "=x"] for number in range(count)), sheet="All") == count
    rows = [[number, "=x"] for number in range(count)]
    parts = [rows[at : at + 2] for at in range(0, count, 2)] or [[]]
    names = ["All", "All (2)", "All (3)"]
    found = read(file)
    assert list(found.items()) == [(names[at], [["no", "text"], *part]) for at, part in enumerate(parts)]
    selected = [bool(one.sheet_view.tabSelected) for one in openpyxl.load_workbook(file).worksheets]
    assert selected == [True] + [False] * (len(parts) - 1)
    assert [one.name for one in tmp_path.iterdir()] == ["a.xlsx"]


@pytest.mark.parametrize("good", [0, 1, 5])
@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_rows_that_fail_leave_nothing_new(tmp_path: Path, monkeypatch: Any, good: int, kind: type[Exception]) -> None:
    monkeypatch.setattr(workbook, "ROWS_OF_A_SHEET", 3)
    file = tmp_path / "a.xlsx"

    def rows() -> Iterator[list[Any]]:
        yield from ([number] for number in range(good))
        raise kind("gone")

    with pytest.raises(kind, match="gone"):
        write_workbook(file, ["no"], rows())
    assert list(tmp_path.iterdir()) == []
    write_workbook(file, ["no"], [[1]])
    with pytest.raises(kind, match="gone"):
        write_workbook(file, ["no"], rows())
    assert read(file) == {"Items": [["no"], [1]]}


def test_a_row_of_another_length_is_a_mistake_that_shows(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shorter"):
        write_workbook(tmp_path / "a.xlsx", ["a", "b"], [[1]])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("count", "code"), [(0, "NO_COLUMNS"), (16_385, "TOO_MANY_COLUMNS")])
def test_columns_that_no_sheet_can_have_are_refused(tmp_path: Path, count: int, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        write_workbook(tmp_path / "a.xlsx", ["x"] * count, [])
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("wanted", "name"), [("", "Items"), ("'a'", "a"), ("[x]:*?/\\", "_x______"), ("é" * 31, "é" * 31), ("a\nb", "a b")]
)
def test_any_name_becomes_one_that_excel_takes(tmp_path: Path, wanted: str, name: str) -> None:
    assert sheet_name(wanted) == name
    write_workbook(tmp_path / "a.xlsx", ["a"], [], sheet=wanted)
    assert list(read(tmp_path / "a.xlsx")) == [name]
