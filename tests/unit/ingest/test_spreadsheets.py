"""Workbooks: what a person sees in a cell, which sheet is read, and what hostile or broken files do."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime, time, timedelta
from functools import cache
from pathlib import Path

import pytest
import xlsxwriter  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidInput, Permanent
from penstock.ingest import workbooks
from penstock.ingest.limits import TableLimits
from penstock.ingest.sheet_xml import SheetReader, StringReader
from penstock.ingest.spreadsheets import Spreadsheet, look_at
from penstock.ingest.tables import Row

LIMITS = TableLimits()
SHEET = "xl/worksheets/sheet1.xml"
KNOWN = {"NOT_A_TABLE", "DECOMPRESSED_TOO_LARGE", "TABLE_BROKEN", "TOO_MANY_COLUMNS", "TOO_MANY_ROWS", "SHEET_UNKNOWN"}


def saved(path: Path, *rows: tuple[object, ...]) -> Path:
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd hh:mm"}) as workbook:
        sheet = workbook.add_worksheet()
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    return path


def read(path: Path, limits: TableLimits = LIMITS, after: int = 0) -> list[Row]:
    return list(Spreadsheet(path, look_at(path, path.name, limits), limits).rows(after))


def cells(path: Path) -> list[list[str]]:
    return [row.cells for row in read(path)]


@cache
def plain_parts() -> dict[str, bytes]:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as workbook:
        workbook.add_worksheet().write(0, 0, "name")
    with zipfile.ZipFile(buffer) as source:
        return {name: source.read(name) for name in source.namelist()}


def with_part(path: Path, part: str, content: bytes) -> Path:
    """Save a plain workbook with one of its parts replaced."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, plain in plain_parts().items():
            target.writestr(name, content if name == part else plain)
    return path


def sheet_xml(rows: str, head: str = "") -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<?xml version="1.0"?>{head}<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'.encode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (4006381333931.0, "4006381333931"),
        (4006381333931, "4006381333931"),
        (19.99, "19.99"),
        (1e-7, "0.0000001"),
        (1e21, "1000000000000000000000"),
        (-3.0, "-3"),
        (True, "TRUE"),
        (False, "FALSE"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 13, 5), "2024-02-29T13:05:00"),  # noqa: DTZ001 - a sheet knows no zone
        (time(13, 5), "13:05:00"),
        ("  kept as it is ", "  kept as it is "),
        ("snøfall ☃", "snøfall ☃"),
        (timedelta(hours=36, minutes=5), "1900-01-01T12:05:00"),
        (None, ""),
    ],
)
def test_a_cell_becomes_what_a_person_sees(tmp_path: Path, value: object, shown: str) -> None:
    assert cells(saved(tmp_path / "t.xlsx", ("key", "value"), ("k", value))) == [["k", shown]]


def test_a_number_format_of_zeros_fills_up_a_barcode(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write(0, 0, "ean")
        sheet.write_number(1, 0, 12345678905, workbook.add_format({"num_format": "0000000000000"}))
    assert cells(path) == [["0012345678905"]]


def test_whole_numbers_keep_every_digit(tmp_path: Path) -> None:
    rows = "".join(f"<row><c><v>{value}</v></c></row>" for value in ("1", "123456789012345678", "4.006381333931E12"))
    path = with_part(tmp_path / "t.xlsx", SHEET, sheet_xml(rows))
    assert cells(path) == [["123456789012345678"], ["4006381333931"]]


def test_dates_of_a_workbook_that_counts_from_1904(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path, {"date_1904": True}) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write(0, 0, "day")
        sheet.write_datetime(1, 0, date(2024, 2, 29), workbook.add_format({"num_format": "yyyy-mm-dd"}))
    assert cells(path) == [["2024-02-29"]]


def test_rich_text_formulas_and_hidden_aids_become_text(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ["rich", "formula", "words"])
        sheet.write_rich_string(1, 0, "plain ", workbook.add_format({"bold": True}), "bold")
        sheet.write_formula(1, 1, "=1+1", None, 2)
        sheet.write_formula(1, 2, '="a"&"b"', None, "ab")
    assert cells(path) == [["plain bold", "2", "ab"]]


def test_inline_text_escapes_and_reading_aids(tmp_path: Path) -> None:
    rows = (
        "<row><c t='inlineStr'><is><t>name</t></is></c></row>"
        "<row><c t='inlineStr'><is><t>東京</t><rPh sb='0' eb='2'><t>トウキョウ</t></rPh></is></c></row>"
        "<row><c t='inlineStr'><is><t>a_x000A_b_x0000__xD800_</t></is></c></row>"
    )
    assert cells(with_part(tmp_path / "t.xlsx", SHEET, sheet_xml(rows))) == [["東京"], ["a\nb"]]


def test_headers_are_cleaned_and_empty_rows_are_none_but_count(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.xlsx", (), (" price ", None, "price"), (), (1, 2, 3), (None, " "), (None, None, 6), (7,))
    assert look_at(path, path.name, LIMITS).headers == ("price", "column 2", "price 2")
    assert read(path) == [Row(4, ["1", "2", "3"]), Row(6, ["", "", "6"]), Row(7, ["7", "", ""])]
    assert read(path, after=1) == read(path)[1:]


def test_the_first_visible_sheet_with_cells_is_read_unless_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        for name in ("empty", "secret", "stock", "more"):
            sheet = workbook.add_worksheet(name)
            if name != "empty":
                sheet.write(0, 0, f"{name} header")
            if name == "secret":
                sheet.hide()
    assert look_at(path, path.name, LIMITS).sheet == "stock"
    assert look_at(path, path.name, LIMITS, sheet="more").headers == ("more header",)
    assert look_at(path, path.name, LIMITS, sheet="secret").headers == ("secret header",)
    with pytest.raises(InvalidInput, match="'empty', 'secret', 'stock', 'more'") as refused:
        look_at(path, path.name, LIMITS, sheet="nowhere")
    assert (refused.value.code, refused.value.field) == ("SHEET_UNKNOWN", "sheet")


def test_a_row_wider_than_the_header_is_bad_and_the_next_one_is_not(tmp_path: Path) -> None:
    wide, good = read(saved(tmp_path / "t.xlsx", ("a", "b"), (1, 2, 3), (4, 5)))
    assert (wide.number, wide.cells, wide.code) == (2, [], "ROW_TOO_LONG")
    assert good == Row(3, ["4", "5"])


def test_a_cell_beyond_its_bound_makes_its_row_bad(tmp_path: Path) -> None:
    limits = TableLimits(cell_characters=5)
    bad, good = read(saved(tmp_path / "t.xlsx", ("a",), ("123456",), ("12345",)), limits)
    assert (bad.cells, bad.code, good) == ([], "CELL_TOO_LONG", Row(3, ["12345"]))


def test_of_a_huge_text_no_more_is_kept_than_a_cell_may_hold() -> None:
    sheet, strings = SheetReader([], {}, 3, 5), StringReader(5)
    for reader, around in ((sheet, ("row", "c")), (strings, ("sst", "si"))):
        start, end, text = reader.handlers()
        for name in (*around, "t"):
            start(name, {"t": "str"})
        for _ in range(1000):
            text("x" * 100)
        for name in ("t", *reversed(around)):
            end(name)
    assert sheet.take_rows() == [(1, ["x" * 100])], "what came at once, and no more"
    assert strings.strings == ["x" * 100]
    assert sheet.take_rows() == []


@pytest.mark.parametrize(
    ("code", "number", "shown"),
    [
        ("dd.mm.yyyy", 45351, "2024-02-29"),
        ("[$-F800]dddd\\, mmmm dd\\, yyyy", 45351, "2024-02-29"),
        ("m/d/yy h:mm AM/PM", 45351.75, "2024-02-29T18:00:00"),
        ('[$-411]ggge"年"m"月"d"日"', 45351, "2024-02-29"),
        ("[h]:mm:ss", 1.5, "36:00:00"),
        ("[mm]:ss.0", 0.0001, "0:00:08.64"),
        ("General", 45351, "45351"),
        ('#,##0.00" days"', 45351, "45351"),
        ("[Red]0.00;[Blue]d", 45351, "45351"),
        ("_-* #,##0.00\\ _d_-", 45351.5, "45351.5"),
        ('0"m; d"', 45351, "45351"),
        ("\\d0", 45351, "45351"),
        ("0.00E+00", 45351, "45351"),
        ("@", 45351, "45351"),
        ("yyyy", -1, ""),
        ("yyyy", 3_000_000, ""),
        ("yyyy", 1, "1900-01-01"),
        ("0000000", -5, "-000005"),
    ],
)
def test_a_format_says_whether_a_number_is_a_date(tmp_path: Path, code: str, number: float, shown: str) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ["key", "value"])
        sheet.write(1, 0, "k")
        sheet.write_number(1, 1, number, workbook.add_format({"num_format": code}))
    assert cells(path) == [["k", shown]]


@pytest.mark.parametrize(
    ("built_in", "shown"), [(14, "2024-02-29"), (2, "45351"), (46, "1088424:00:00"), (57, "2024-02-29")]
)
def test_formats_that_a_workbook_need_not_write_down(tmp_path: Path, built_in: int, shown: str) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write(0, 0, "value")
        sheet.write_number(1, 0, 45351, workbook.add_format({"num_format": built_in}))
    assert cells(path) == [[shown]]


def test_other_types_of_cells(tmp_path: Path) -> None:
    rows = (
        "<row r='3'><c t='str'><v>head</v></c><c t='str'><v>b</v></c></row>"
        "<row r='5'><c t='e'><v>#N/A</v></c><c t='d'><v>2024-02-29T00:00:00</v></c></row>"
        "<row r='5'><c t='b'><v>1</v></c><c t='d'><v>later</v></c></row>"
        "<row><c r='B7'><f>1+1</f><v>2</v></c></row><x:row r='20'><x:c r='A20'><x:v>7</x:v></x:c></x:row>"
    )
    content = sheet_xml(rows).replace(b"<worksheet ", b'<worksheet xmlns:x="urn:x" ')
    assert read(with_part(tmp_path / "t.xlsx", SHEET, content)) == [
        Row(5, ["", "2024-02-29"]), Row(6, ["TRUE", "later"]), Row(7, ["", "2"]), Row(20, ["7", ""])
    ]  # fmt: skip


def test_too_many_columns_and_rows(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.xlsx", ("a", "b", "c"), (1, 2, 3), (4, 5, 6))
    with pytest.raises(InvalidInput) as wide:
        look_at(path, path.name, TableLimits(columns=2))
    assert wide.value.code == "TOO_MANY_COLUMNS"
    table = Spreadsheet(path, look_at(path, path.name, LIMITS), TableLimits(rows=1))
    rows = table.rows()
    assert next(rows).number == 2
    with pytest.raises(InvalidInput) as long:
        next(rows)
    assert long.value.code == "TOO_MANY_ROWS"


def test_row_numbers_far_apart_and_wrong_dimensions_cost_nothing(tmp_path: Path) -> None:
    rows = "<row r='1'><c r='A1'><v>1</v></c></row><row r='999999999999'><c r='A7'><v>2</v></c></row>"
    content = sheet_xml(rows).replace(b"<sheetData>", b'<dimension ref="A1:A1"/><sheetData>')
    assert cells(with_part(tmp_path / "t.xlsx", SHEET, content)) == [["2"]]


@pytest.mark.parametrize("content", [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, b"a,b\n1,2\n", b"PK\x03\x04"])
def test_what_is_no_workbook_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"\.xlsx.*or.*CSV") as refused:
        look_at(path, path.name, LIMITS)
    assert refused.value.code == "NOT_A_TABLE"


def test_a_workbook_without_cells_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no cells") as refused:
        look_at(saved(tmp_path / "t.xlsx"), "prices.xlsx", LIMITS)
    assert refused.value.code == "NOT_A_TABLE"


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    path = with_part(tmp_path / "t.xlsx", SHEET, sheet_xml("<row><c t='str'><v>&b;</v></c></row>", head=laughs))
    with pytest.raises(InvalidInput, match="document type") as refused:
        look_at(path, path.name, LIMITS)
    assert refused.value.code == "NOT_A_TABLE"


@pytest.mark.parametrize("token", ["<!-- {} -->", "<row a='{}'/>"])
def test_a_tag_or_comment_without_an_end_is_refused(tmp_path: Path, token: str) -> None:
    path = with_part(tmp_path / "t.xlsx", SHEET, sheet_xml(token.format("> " * 2**20)[:-3]))
    with pytest.raises(InvalidInput, match="a tag of more than") as refused:
        look_at(path, path.name, LIMITS)
    assert refused.value.code == "NOT_A_TABLE"


class Counting:
    """Counts the bytes unpacked, through every way a member is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        plain = zipfile.ZipExtFile.read

        def counted(member: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
            chunk = plain(member, n)
            self.bytes += len(chunk)
            return chunk

        monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)


def test_a_bomb_that_declares_its_size_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_part(tmp_path / "t.xlsx", SHEET, sheet_xml("<row/>"))
    content = path.read_bytes()
    entry = content.rindex(b"PK\x01\x02", 0, content.rindex(SHEET.encode()))
    path.write_bytes(content[: entry + 24] + (2**30).to_bytes(4, "little") + content[entry + 28 :])
    read_so_far = Counting(monkeypatch)
    with pytest.raises(InvalidInput) as refused:
        look_at(path, path.name, TableLimits(decompressed_bytes=2**29))
    assert (refused.value.code, read_so_far.bytes) == ("DECOMPRESSED_TOO_LARGE", 0)


def test_what_is_unpacked_is_counted_whatever_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_part(tmp_path / "t.xlsx", SHEET, sheet_xml("<!--x-->" * 2**20))
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    bound = 2**20
    # The declared sizes are made to lie to the guard alone, as if the reader did not cut a member there.
    monkeypatch.setattr(workbooks, "sum", lambda _sizes: 0, raising=False)
    assert max(member.file_size for member in members) > 8 * bound
    read_so_far = Counting(monkeypatch)
    with pytest.raises(InvalidInput) as refused:
        look_at(path, path.name, TableLimits(decompressed_bytes=bound))
    assert refused.value.code == "DECOMPRESSED_TOO_LARGE"
    assert bound < read_so_far.bytes <= bound + workbooks._CHUNK


@pytest.mark.parametrize("bound", ["SHARED_STRINGS_BYTES", "_STRINGS_HELD_BYTES"])
def test_the_shared_strings_have_bounds_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        workbook.add_worksheet().write_column(0, 0, [f"text {number}" for number in range(100)])
    assert len(read(path)) == 99
    monkeypatch.setattr(workbooks, bound, 1000)
    with pytest.raises(InvalidInput) as refused:
        look_at(path, path.name, LIMITS)
    assert refused.value.code == "DECOMPRESSED_TOO_LARGE"


def test_the_small_parts_have_a_bound_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "t.xlsx", ("a",))
    monkeypatch.setattr(workbooks, "_SMALL_PART_BYTES", 100)
    with pytest.raises(InvalidInput) as refused:
        look_at(path, path.name, LIMITS)
    assert refused.value.code == "DECOMPRESSED_TOO_LARGE"


def test_a_sheet_that_breaks_off_says_how_far_it_was_read(tmp_path: Path) -> None:
    rows = "".join(f"<row><c><v>{number}</v></c></row>" for number in range(10_001))
    path = with_part(tmp_path / "t.xlsx", SHEET, sheet_xml(rows + "<row><c></row>"))
    table = Spreadsheet(path, look_at(path, path.name, LIMITS), LIMITS)
    seen: list[Row] = []
    with pytest.raises(Permanent, match=r"behind row [1-9]") as broken:
        seen.extend(table.rows())
    assert broken.value.code == "TABLE_BROKEN"
    assert f"behind row {seen[-1].number} " in broken.value.message


def _plain_workbook() -> bytes:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ["ean", "title", "price"])
        for number in range(1, 30):
            sheet.write_row(number, 0, [4006381333931 + number, f"title {number}", number / 7])
    return buffer.getvalue()


PLAIN = _plain_workbook()


def outcome(path: Path) -> str:
    try:
        return f"{len(read(path))} rows"
    except (InvalidInput, Permanent) as error:
        return error.code


@given(cut=st.integers(0, len(PLAIN) - 1))
def test_a_truncated_workbook_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "truncated.xlsx"
    path.write_bytes(PLAIN[:cut])
    assert outcome(path) == "NOT_A_TABLE"


@given(flips=st.lists(st.tuples(st.integers(0, len(PLAIN) - 1), st.integers(1, 255)), min_size=1, max_size=8))
def test_flipped_bits_give_rows_or_a_known_code(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]]
) -> None:
    content = bytearray(PLAIN)
    for position, mask in flips:
        content[position] ^= mask
    path = tmp_path_factory.getbasetemp() / "flipped.xlsx"
    path.write_bytes(content)
    assert outcome(path) in KNOWN | {"29 rows"}


@given(content=st.binary(max_size=400) | st.binary(max_size=400).map(lambda some: sheet_xml("<row>") + some))
def test_any_bytes_for_a_sheet_give_a_known_code(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = with_part(tmp_path_factory.getbasetemp() / "sheet.xlsx", SHEET, content)
    assert outcome(path) in KNOWN


@given(
    kind=st.sampled_from(["n", "s", "b", "d", "e", "str", "what"]),
    style=st.sampled_from(["", "0", "1", "99", "x"]),
    value=st.text(st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters="<&"), max_size=8)
    | st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,5})?(E[+-]?[0-9]{1,4})?", fullmatch=True),
)
def test_any_value_of_a_cell_gives_text_or_a_known_code(
    tmp_path_factory: pytest.TempPathFactory, kind: str, style: str, value: str
) -> None:
    rows = f"<row><c t='str'><v>h</v></c></row><row><c t='{kind}' s='{style}'><v>{value}</v></c></row>"
    path = with_part(tmp_path_factory.getbasetemp() / "cell.xlsx", SHEET, sheet_xml(rows))
    assert outcome(path) in {"0 rows", "1 rows", "TABLE_BROKEN", "NOT_A_TABLE"}
