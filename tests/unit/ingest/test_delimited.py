"""How files of delimited text are looked at and read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import InvalidInput, PayloadTooLarge
from penstock.exports.csv_text import csv_chunks
from penstock.ingest import delimited_text, encodings
from penstock.ingest.delimited_text import Delimited, look_at
from penstock.ingest.limits import TableLimits
from penstock.ingest.tables import Row, TableShape, clean_headers

LIMITS = TableLimits()
Write = Callable[[bytes | str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_table(content: bytes | str) -> Path:
        path = tmp_path / "table.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_table


def read(path: Path, limits: TableLimits = LIMITS, after: int = 0, encoding: str | None = None) -> list[Row]:
    return list(Delimited(path, look_at(path, limits, encoding=encoding), limits).rows(after))


def cells(rows: list[Row]) -> list[list[str]]:
    return [row.cells for row in rows]


@pytest.mark.parametrize(
    ("content", "delimiter", "headers"),
    [
        ("a,b\n1,2\n", ",", ("a", "b")),
        ("a;b\n1,5;2,5\n", ";", ("a", "b")),
        ("a\tb, c\n1\t2, 3\n", "\t", ("a", "b, c")),
        ("a|b\n1|2\n", "|", ("a", "b")),
        ("a\n1\n2;3\n", "\x1f", ("a",)),
        (";;\n ;\na;b\n1;2\n", ";", ("a", "b")),
        ("'-a,b\n1,2\n", ",", ("-a", "b")),
        ('"a;x",b\n1,"2;3;4"\n', ",", ("a;x", "b")),
        ("sep=;\na,b;c\n1;2\n", ";", ("a,b", "c")),
        ("\n\na,b\n", ",", ("a", "b")),
        (" a ,,a,a\n", ",", ("a", "column 2", "a 2", "a 3")),
    ],
)
def test_delimiter_and_headers_are_found(write: Write, content: str, delimiter: str, headers: tuple[str, ...]) -> None:
    shape = look_at(write(content), LIMITS)
    assert (shape.delimiter, shape.headers, shape.quote) == (delimiter, headers, '"')


def test_shape_survives_json(write: Write) -> None:
    shape = look_at(write("a;b\n1;2\n"), LIMITS)
    assert TableShape.from_json(json.loads(json.dumps(shape.to_json()))) == shape


def test_headers_stay_different_when_a_copy_meets_a_given_name() -> None:
    assert clean_headers(["a", "a 2", "a", "", "column 4"]) == ("a", "a 2", "a 3", "column 4", "column 4 2")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "TABLE_EMPTY"),
        (b"\r\n\n\r", "TABLE_EMPTY"),
        (b"sep=;\n", "TABLE_EMPTY"),
        (b' ,"",\n;;\n', "TABLE_EMPTY"),
        (b"\xef\xbb\xbf", "TABLE_EMPTY"),
        (bytes(range(32)) * 40, "NOT_A_TABLE"),
        (b"\x89PNG\r\n\x1a\n", "NOT_A_TABLE"),
        (b'"a,b\n1\n2,3\n', "NOT_A_TABLE"),
        (b"x" * 300_000, "NOT_A_TABLE"),
        (b"a" + b"," * 500 + b"\n", "TOO_MANY_COLUMNS"),
        (b"a," + b"x" * 32_768 + b"\n", "CELL_TOO_LONG"),
    ],
)
def test_file_that_is_no_table_is_refused(write: Write, content: bytes, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        look_at(write(content), LIMITS)
    assert (refused.value.code, refused.value.field) == (code, "file")


@pytest.mark.parametrize("told", ["", ",,", '"', "\n"])
def test_delimiter_that_cannot_be_one_is_refused(write: Write, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        look_at(write("a,b\n"), LIMITS, delimiter=told)
    assert refused.value.code == "DELIMITER_UNKNOWN"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("blank", ["", ",", "  ", " ,\t", '"",'])
def test_rows_are_padded_and_blank_ones_are_none_but_count(write: Write, end: str, quoted: bool, blank: str) -> None:
    third = '"5,""6"""' if quoted else "5"
    rows = read(write(end.join([blank, "a,b", "1,2", blank, "3", f"{third},,,", blank, blank, "7,8", blank])))
    assert [row.number for row in rows] == [3, 5, 6, 9], "as a spreadsheet shows them"
    assert cells(rows) == [["1", "2"], ["3", ""], ['5,"6"' if quoted else "5", ""], ["7", "8"]]


def test_a_table_with_blank_rows_is_taken_up_anywhere(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "BLOCK_BYTES", 40)
    path = write("a,b\n" + "1,2\n,\n\n3,'=4\n" * 20 + "5,6\n" * 40 + '"7",8\n , \n9,0\n')
    every = read(path)
    assert [row.number for row in every] == [*(4 * at + 2 + 3 * second for at in range(20) for second in (0, 1)),
        *range(82, 122), 122, 124]  # fmt: skip
    assert {row.cells[1] for row in every} == {"2", "=4", "6", "8", "0"}
    assert all(read(path, after=after) == every[after:] for after in range(len(every) + 1))


def test_a_list_of_one_column_may_hold_any_sign(write: Write) -> None:
    rows = read(write('title\nPen, blue\nKettle; 1|7\t l\n"Rope, ""thick"""\n'))
    assert cells(rows) == [["Pen, blue"], ["Kettle; 1|7\t l"], ['Rope, "thick"']]
    assert read(write("title\na\x1fb\n"))[0].code == "ROW_TOO_LONG", "which no text holds"


def test_an_export_that_is_taken_in_again_is_what_it_was(write: Write) -> None:
    table = [
        ["-A1", "-20 °C freezer"],
        ["'=1", "''-"],
        ["-5", " @now"],
        ["a;=1", "\t=\n'+2"],
        ["men's", "'"],
        ["x", "-5,2"],
    ]
    written = b"".join(csv_chunks(["sku", "=title"], table))
    path = write(written)
    assert look_at(path, LIMITS).headers == ("sku", "=title")
    assert cells(read(path)) == table
    again = b"".join(csv_chunks(["sku", "=title"], cells(read(path))))
    assert again == written


def test_headers_alone_are_a_table_without_rows(write: Write) -> None:
    assert read(write("a,b")) == []


def test_line_ends_inside_quotes_belong_to_the_cell(write: Write) -> None:
    assert cells(read(write('a,b\r\n"1\r\n\r\n2",x\r\n3,"4\n5"'))) == [["1\r\n\r\n2", "x"], ["3", "4\n5"]]


def test_apostrophes_quote_when_every_header_is_wrapped_in_them(write: Write) -> None:
    assert cells(read(write("'a','b'\n'1,5','2'\n"))) == [["1,5", "2"]]
    assert cells(read(write("a,b\n'1,'2\n"))) == [["'1", "'2"]]


def test_stray_quotes_are_text_when_the_file_makes_no_sense_otherwise(write: Write) -> None:
    path = write('size\tname\n"5 inch\tx\n7\ty\n')
    assert look_at(path, LIMITS).quote is None
    assert cells(read(path)) == [['"5 inch', "x"], ["7", "y"]]


@pytest.mark.parametrize("quoted", ["", '"q",q\n'])
def test_bad_rows_keep_their_place(write: Write, quoted: str) -> None:
    content = "a,b\n" + quoted + "ü,ö\n1,2,3\n" + "x" * 32_768 + ",1\n\0,1\n"
    rows = read(write(content.encode() + b"\xff\xfe,1\nlast,\xc3\xa4"), encoding="utf-8")[-6:]
    assert [row.code for row in rows] == [
        None,
        "ROW_TOO_LONG",
        "CELL_TOO_LONG",
        "ROW_UNREADABLE",
        "ROW_UNREADABLE",
        None,
    ]
    assert [row.number for row in rows] == list(range(rows[0].number, rows[0].number + 6))
    assert rows[-1].cells == ["last", "ä"]
    assert all(row.problem and not row.cells for row in rows[1:-1])


def test_long_cell_of_many_lines_is_one_bad_row(write: Write) -> None:
    long = "some text\n" * 20_000
    rows = read(write(f'a,b\n1,2\n"{long}",x\n3,4\n'))
    assert [row.code for row in rows] == [None, "CELL_TOO_LONG", None]


def test_bytes_broken_behind_the_sample_spoil_their_row_alone(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "BLOCK_BYTES", 4000)
    good = "ü,2\n" * 2_000
    rows = read(write(b"a,b\n" + good.encode() + b"\xfc,2\n" + good.encode()))
    assert len(rows) == 4_001
    assert [row.number for row in rows if row.problem] == [2_002]


def test_quote_never_closed_costs_one_row(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "BLOCK_BYTES", 4000)
    monkeypatch.setattr(delimited_text, "RECORD_CHARACTERS", 16_000)
    good = "1,2345678\n" * 5_000
    rows = read(write('a,b\n"x",y\n' + good + '"open,2\n' + good + '"far",behind\n'))
    assert [(row.number, row.code) for row in rows if row.problem] == [(5_003, "ROW_UNREADABLE")]
    assert rows[-1] == Row(10_004, ["far", "behind"])


def test_quote_never_closed_near_the_end_costs_one_row(write: Write) -> None:
    rows = read(write('a,b\n"x",y\n1,2\n"open,2\n3,4\n5,6'))
    assert [row.code for row in rows] == [None, None, "ROW_UNREADABLE", None, None]
    assert rows[-1].cells == ["5", "6"]


def test_file_of_unclosed_quotes_is_read_once_per_block_and_not_once_per_line(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited_text, "RECORD_CHARACTERS", 4000)
    starts: list[int] = []
    start = delimited_text._Feed.start

    def counted(feed: delimited_text._Feed) -> object:
        starts.append(1)
        return start(feed)

    monkeypatch.setattr(delimited_text._Feed, "start", counted)
    rows = read(write('a,b\n"x",y\n' + 'a"b,"c\n' * 5000))
    assert len(rows) == 5001
    assert {row.code for row in rows[1:]} == {"ROW_UNREADABLE"}
    assert len(starts) < 5 * 36


def test_overlong_line_is_one_bad_row(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "BLOCK_BYTES", 64)
    monkeypatch.setattr(encodings, "LINE_CHARACTERS", 200)
    rows = read(write("a,b\n1,2\n" + "x" * 5000 + ",2\n3,4\n"))
    assert [row.code for row in rows] == [None, "ROW_UNREADABLE", None]


@pytest.mark.parametrize("row", ["1,2\n", '1,"2"\n', "1\n"])
def test_more_rows_than_allowed_are_refused_wherever_reading_starts(write: Write, row: str) -> None:
    path, limits = write("a,b\n" + row * 5), TableLimits(rows=4)
    for after in (0, 3, 4, 5, 9):
        with pytest.raises(PayloadTooLarge) as refused:
            read(path, limits, after)
        assert refused.value.code == "TOO_MANY_ROWS"
    assert len(read(path, TableLimits(rows=5))) == 5
