"""A cell shows what it was given, and nothing in it is run."""

from __future__ import annotations

import doctest
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import formulas
from penstock.exports import cells, workbook
from penstock.exports.cells import (
    TEXT_OF_A_CELL,
    csv_cell,
    csv_row,
    guarded_row,
    sheet_cell,
    sheet_row,
)
from penstock.formulas import guard, may_be_guarded, may_split, unguard

SIGNS = "=+-@＝＋－＠"
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
VALUES = st.one_of(
    ANY_TEXT, st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.integers()),
    st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3),
)  # fmt: skip


@pytest.mark.parametrize("module", [cells, formulas, workbook])
def test_the_examples_are_true(module: Any) -> None:
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("before", ["", " ", "\t", "\u00a0", "\u3000", "\ufeff", "\u200b", "\0", "\x1b", "\r\n  "])
@pytest.mark.parametrize("sign", SIGNS)
def test_a_formula_gets_an_apostrophe_also_after_what_nobody_sees(before: str, sign: str) -> None:
    text = f"{before}{sign}cmd|' /C calc'!A0"
    # What stands behind a tab or the end of a line may be split off, and has an apostrophe of its own.
    written = {"\t": f"'\t'{sign}", "\r\n  ": f"'\r\n'  {sign}"}.get(before, f"'{before}{sign}") + "cmd|' /C calc'!A0"
    assert csv_cell(text) == written
    assert csv_row([text]) == [written]


@pytest.mark.parametrize("text", ["\tx", "\rx", "\nx", "-5-3", "-5\n", "+", "-", "--5", "-5+A1", "=5", "-٥"])
def test_what_only_looks_harmless_is_guarded(text: str) -> None:
    assert csv_row([text]) == [f"'{text}"]


@pytest.mark.parametrize(
    "text", ["-5", "-5,20", "+3.5", "-1.234,50", "-2e-7", "-12%", "a=b", " x", "", "men's", "Ünder"]
)
def test_plain_numbers_and_other_texts_stay(text: str) -> None:
    assert csv_row([text]) == [text]


def test_a_kind_of_text_is_guarded_like_text() -> None:
    class Sign(StrEnum):
        SUM = "=SUM(A1)"

    assert csv_row([Sign.SUM]) == ["'=SUM(A1)"]
    assert [type(one) for one in sheet_row([Sign.SUM])] == [str]


def test_json_that_the_fast_writer_refuses_is_written_all_the_same() -> None:
    assert csv_cell({"n": 2**70}) == f'{{"n":{2**70}}}'
    assert sheet_cell(["\ud800"]) == '["\ufffd"]'


@given(VALUES)
def test_the_quick_way_for_rows_says_what_the_function_for_cells_says(value: Any) -> None:
    quick = ["" if one is None else one for one in csv_row([value])]
    assert repr(quick) == repr([csv_cell(value)]) or may_split(f"{quick[0]}\r\n")
    assert repr(["" if one is None else one for one in guarded_row([value])]) == repr([csv_cell(value)])
    assert repr(sheet_row([value])) == repr([sheet_cell(value)])


@given(st.one_of(ANY_TEXT, st.text(f"'-=5 \t\n;|a\"{SIGNS}", max_size=8)))
def test_what_is_guarded_is_what_it_was_once_the_guard_is_taken_off(text: str) -> None:
    guarded = guard(text)
    assert unguard(guarded) == text
    assert guarded == text or may_be_guarded(guarded)


@given(ANY_TEXT)
def test_no_text_begins_like_a_formula_unless_it_is_a_number(text: str) -> None:
    (written,) = csv_row([text])
    assert isinstance(written, str)
    assert written in (text, f"'{text}")
    seen = written.replace("\0", "").lstrip()
    if seen.startswith(tuple(SIGNS)):
        assert float(seen.replace(",", "").replace(".", "").rstrip("%")) is not None


@pytest.mark.parametrize("letter", ["x", "😀", "ä"])
@pytest.mark.parametrize("length", [TEXT_OF_A_CELL // 2, TEXT_OF_A_CELL // 2 + 1, TEXT_OF_A_CELL, TEXT_OF_A_CELL + 1])
def test_a_text_is_cut_where_excel_would_refuse_it(letter: str, length: int) -> None:
    text = letter * length
    (written,) = sheet_row([text])
    assert isinstance(written, str)
    units = len(written.encode("utf-16-le")) // 2
    assert units <= TEXT_OF_A_CELL
    if len(text.encode("utf-16-le")) // 2 <= TEXT_OF_A_CELL:
        assert written == text
    else:
        assert units >= TEXT_OF_A_CELL - 1
        assert written.endswith(letter + "…")


@pytest.mark.parametrize(
    ("number", "written"), [(10**15 - 1, 10**15 - 1), (10**15, str(10**15)), (-(10**15), str(-(10**15)))]
)
def test_a_number_with_more_digits_than_excel_keeps_is_text(number: int, written: object) -> None:
    assert sheet_row([number]) == [written]
