"""CSV comes in pieces, reads back as it was given, and asks for rows only when they are wanted."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.exports.cells import guarded_row
from penstock.exports.csv_text import PIECE, csv_chunks
from tests.unit.exports.test_cells import ANY_TEXT, SIGNS, VALUES

UNSEEN = " \u00a0\u200b\ufeff"


def read(pieces: Iterator[bytes]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(b"".join(pieces).decode("utf-8-sig"), newline="")))


def as_read(cell: Any) -> str:
    """What the documented changes make of a cell."""
    text = "" if cell is None else str(cell).replace("\0", "")
    return "".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in text)


def test_the_bytes() -> None:
    rows: list[list[Any]] = [[1, "a,b"], [2.5, "=1+1"], [None, True], ["Käse", ["x"]]]
    lines = [b"\xef\xbb\xbfno,text", b'1,"a,b"', b"2.5,'=1+1", b",TRUE", b'K\xc3\xa4se,"[""x""]"', b""]
    assert b"".join(csv_chunks(["no", "text"], rows)) == b"\r\n".join(lines)


def test_the_mark_may_be_left_out() -> None:
    assert list(csv_chunks(["a"], [], bom=False)) == [b"a\r\n"]


def test_a_header_is_guarded_too() -> None:
    assert list(csv_chunks(["=a"], [], bom=False)) == [b"'=a\r\n"]


def test_a_sign_behind_a_nul_is_not_let_out_when_the_nul_is_removed() -> None:
    assert read(csv_chunks(["a"], [["\0=1+1"]])) == [["a"], ["'=1+1"]]


@pytest.mark.parametrize("between", [";", "|", "\t", "\n", "\r", "\r\n", "; ", ';"', ";\u200b", "x;;"])
@pytest.mark.parametrize("sign", SIGNS)
def test_no_part_of_a_cell_is_a_formula_wherever_a_spreadsheet_splits_it(between: str, sign: str) -> None:
    text = f"a{between}{sign}cmd|' /C calc'!A0"
    rows: tuple[list[Any], ...] = (["x", text], [text, "x"], ["x", [text]])
    for row in rows:
        assert not formulas(b"".join(csv_chunks(["a", "b"], [row], bom=False)).decode())


@pytest.mark.parametrize("first", [-5, -2.5, "-5", "+5", "-5,20", "-12%"])
def test_a_number_with_a_sign_does_not_begin_a_line_for_what_follows_it_would_belong_to_it(first: Any) -> None:
    [_, written] = read(csv_chunks(["a", "b"], [[first, "1+cmd|' /C calc'!A0"]], bom=False))
    assert written == [f"'{first}", "1+cmd|' /C calc'!A0"]
    assert list(csv_chunks(["a"], [[-5], [7]], bom=False)) == [b"a\r\n-5\r\n7\r\n"], "alone, it is a number"
    assert list(csv_chunks(["a", "b"], [[1, -5]], bom=False)) == [b"a,b\r\n1,-5\r\n"], "nor does it begin a line here"


@given(st.lists(st.lists(VALUES, min_size=2, max_size=3), min_size=1, max_size=5))
def test_no_locale_finds_a_formula_in_any_table(rows: list[list[Any]]) -> None:
    assert not formulas(b"".join(csv_chunks(["a", "b"], rows, bom=False)).decode())


def formulas(text: str) -> list[str]:
    """The fields that begin like a formula, where lines are split at other signs than commas and quotes are text."""
    fields = re.split("[;|\t\r\n]", text)
    return [field for field in fields if field.lstrip(UNSEEN + '"').startswith(tuple(SIGNS))]


def test_a_piece_is_guarded_in_time_that_grows_with_its_length() -> None:
    """One regular expression that went back at each line would take minutes for this cell."""
    for text in ("\n" * 300_000, ";" * 300_000, " " * 300_000 + ";", "; " * 150_000):
        assert b"".join(csv_chunks(["a", "b"], [["x", text]], bom=False))


@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), max_size=8), st.lists(ANY_TEXT, min_size=3, max_size=3))
def test_any_table_reads_back(rows: list[list[Any]], columns: list[str]) -> None:
    assert read(csv_chunks(columns, rows)) == [[as_read(cell) for cell in guarded_row(row)] for row in [columns, *rows]]


def test_pieces_are_of_one_size_and_rows_are_taken_as_they_are_needed() -> None:
    taken = 0

    def rows() -> Iterator[list[Any]]:
        nonlocal taken
        for number in range(20_000):
            taken += 1
            yield [number, "x" * 50]

    pieces = csv_chunks(["no", "text"], rows())
    first = next(pieces)
    assert PIECE <= len(first) < PIECE + 100
    assert taken < 2_000
    rest = list(pieces)
    assert all(PIECE <= len(piece) < PIECE + 100 for piece in rest[:-1])
    assert (first + b"".join(rest)).count(b"\r\n") == 20_001


def test_an_error_of_the_rows_reaches_the_one_who_reads() -> None:
    def rows() -> Iterator[list[Any]]:
        yield [1]
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        list(csv_chunks(["a"], rows()))
