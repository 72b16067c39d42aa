"""Which question is asked in which attempt."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidInput
from penstock_apps.products.products import Product
from penstock_apps.products.strategies import Strategy, choose_query, queries_for

WHOLE = Product(sku="A-1", gtin="4006381333931", brand="Millrace", title="Kettle")


def test_a_whole_row_allows_four_questions_the_surest_first() -> None:
    assert [(one.strategy, one.text) for one in queries_for(WHOLE)] == [
        (Strategy.SKU, "A-1"),
        (Strategy.GTIN, "4006381333931"),
        (Strategy.BRAND_AND_TITLE, "Millrace Kettle"),
        (Strategy.TITLE, "Kettle"),
    ]


def test_every_question_knows_all_that_an_answer_is_checked_against() -> None:
    assert {(one.sku, one.gtin, one.brand, one.title) for one in queries_for(WHOLE)} == {
        ("A-1", "4006381333931", "Millrace", "Kettle")
    }


def test_a_title_that_starts_with_the_brand_is_asked_once() -> None:
    assert [one.strategy for one in queries_for(Product(brand="millrace", title="Millrace Kettle"))] == [Strategy.TITLE]


def test_questions_that_found_nothing_are_followed_by_others_and_start_again() -> None:
    possible = queries_for(WHOLE)
    assert [choose_query(possible, times).strategy for times in range(5)] == [
        Strategy.SKU, Strategy.GTIN, Strategy.BRAND_AND_TITLE, Strategy.TITLE, Strategy.SKU,
    ]  # fmt: skip


def test_no_question_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no question"):
        choose_query(queries_for(Product(brand="Millrace")), 0)
