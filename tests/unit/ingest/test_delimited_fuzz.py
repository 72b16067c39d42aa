"""Whatever the bytes are, reading them ends, loses nothing and can be taken up anywhere."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.formulas import unguard
from penstock.ingest import delimited_text, encodings
from penstock.ingest.delimited_text import Delimited, is_blank, look_at
from penstock.ingest.limits import TableLimits
from penstock.ingest.tables import Row, TableShape

LIMITS = TableLimits(cell_characters=300)
CODES = {"TABLE_EMPTY", "NOT_A_TABLE", "TOO_MANY_COLUMNS", "CELL_TOO_LONG"}
ROW_CODES = {"ROW_TOO_LONG", "CELL_TOO_LONG", "ROW_UNREADABLE"}

PLAIN = [b"a", b"1", b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b"\n\n", "ü".encode(), b"a,b\n", b"sep=;\n"]
TROUBLE = [
    b'"',
    b'""',
    b"'",
    b"\0",
    b"\xff",
    b"\xc3",
    b'"x,y",z\n',
    b'a"b,"c\n',
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"x" * 400,
]
PIECES = st.sampled_from([*PLAIN, *TROUBLE])
FILES = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=60).map(b"".join))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "table.csv"


def look_or_refuse(path: Path) -> TableShape | str:
    try:
        return look_at(path, LIMITS)
    except InvalidInput as refused:
        return refused.code


@given(data=FILES, size=st.integers(16, 64), after=st.integers(0, 12))
def test_any_bytes_are_read_to_the_end_or_refused(path: Path, data: bytes, size: int, after: int) -> None:
    path.write_bytes(data)
    shape = look_or_refuse(path)
    if isinstance(shape, str):
        assert shape in CODES
        return
    table = Delimited(path, shape, LIMITS)
    with (  # small blocks, so that small files have many of them and every bound is met
        patch.multiple(encodings, BLOCK_BYTES=size, LINE_CHARACTERS=size * 4),
        patch.object(delimited_text, "RECORD_CHARACTERS", size * 2),
    ):
        rows = list(table.rows())
        assert list(table.rows(after)) == rows[after:]
    numbers = [row.number for row in rows]
    assert numbers == sorted(set(numbers)), "each has its own"
    assert not numbers or numbers[0] >= 2, "the headers are the first"
    for row in rows:
        if row.problem is None:
            assert len(row.cells) == len(shape.headers)
            assert not encodings.has_marks("".join(row.cells))
            assert not is_blank(row.cells)
        else:
            assert row.cells == []
            assert row.code in ROW_CODES


CELL = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "x",
            '"',
            '""',
            "a,b",
            "a;b",
            "\n",
            "\r\n",
            "\r",
            "'",
            "\ta",
            "|",
            "ü",
            "sep=,",
            "€",
            "'=1",
            "-5",
            "'\t",
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=12),
)


@given(
    table=st.integers(1, 5).flatmap(
        lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), max_size=25)
    ),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    size=st.integers(16, 200),
)
def test_what_was_written_is_what_is_read(
    path: Path, table: list[list[str]], delimiter: str, encoding: str, end: str, quoting: int, size: int
) -> None:
    width = len(table[0]) if table else 3
    if any("\n" in cell or "\r" in cell for cells in table for cell in cells):
        quoting = csv.QUOTE_ALL  # the writer quotes only its own line end
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    headers = [f"header {number}" for number in range(width)]
    writer.writerows([headers, *table])
    path.write_bytes(text.getvalue().encode(encoding))
    # The owner names what cannot be known for sure: random cells may look like another delimiter.
    shape = look_at(path, LIMITS, delimiter=delimiter, encoding=encoding)
    assert shape.headers == tuple(headers)
    with patch.object(encodings, "BLOCK_BYTES", size):
        rows = list(Delimited(path, shape, LIMITS).rows())
    assert rows == [
        Row(number, [unguard(cell) for cell in cells])
        for number, cells in enumerate(table, start=2)
        if not is_blank(cells)
    ]


WORDS = st.text("abc xyzäö0123456789.", min_size=1, max_size=12)


@given(
    table=st.integers(2, 6).flatmap(
        lambda width: st.lists(st.lists(WORDS, min_size=width, max_size=width), min_size=1, max_size=20)
    ),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_ordinary_tables_need_nothing_said(
    path: Path, table: list[list[str]], delimiter: str, encoding: str, quoting: int
) -> None:
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter, quoting=quoting).writerows(  # type: ignore[arg-type]
            [[f"h{number}" for number in range(len(table[0]))], *table]
        )
    shape = look_at(path, LIMITS)
    assert (shape.delimiter, shape.encoding) == (delimiter, encoding)
    assert [row.cells for row in Delimited(path, shape, LIMITS).rows()] == table
