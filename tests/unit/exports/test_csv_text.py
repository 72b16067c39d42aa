"""CSV comes in pieces, reads back as it was given, and asks for rows only when they are wanted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.exports.cells import csv_cell
from penstock.exports.csv_text import PIECE, csv_chunks
from tests.unit.exports.test_cells import ANY_TEXT, VALUES


def read(pieces: Iterator[bytes]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(b"".join(pieces).decode("utf-8-sig"), newline="")))


def as_read(value: Any) -> str:
    """What the documented changes make of a value."""
    text = str(csv_cell(value)).replace("\0", "")
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


@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), max_size=8), st.lists(ANY_TEXT, min_size=3, max_size=3))
def test_any_table_reads_back(rows: list[list[Any]], columns: list[str]) -> None:
    assert read(csv_chunks(columns, rows)) == [[as_read(value) for value in row] for row in [columns, *rows]]


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
