"""Rows made clean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_apps.products.products import (
    Unusable,
    canonical_gtin,
    check_digit,
    clean,
    price_and_currency,
    same_gtin,
)
from tests.applications.products.rows import normalize_row


@pytest.mark.parametrize(
    ("given_text", "stored", "kept"),
    [
        ("4006381333931", "4006381333931", "4006381333931"),
        ("EAN: 4-006381-333931", "4006381333931", "4006381333931"),
        ("036000291452", "0036000291452", "036000291452"),
        ("04006381333931", "4006381333931", "04006381333931"),
        ("14006381333938", "14006381333938", "14006381333938"),
        ("40170725", "40170725", "40170725"),
        ("ISBN 0-306-40615-2", "9780306406157", "0306406152"),
        ("0-8044-2957-X", "9780804429573", "080442957X"),
        ("4006381333931.0", "4006381333931", "4006381333931"),
    ],
)
def test_a_good_barcode_number_has_one_spelling_and_keeps_its_own(given_text: str, stored: str, kept: str) -> None:
    product = normalize_row({"gtin": given_text})
    assert (product["gtin"], product["gtin_given"], product["warnings"]) == (stored, kept, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4006381333932", "wrong check digit"),
        ("0-306-40615-3", "wrong check digit"),
        ("4.00638E+12", "lost its last digits"),
        ("4,00638e12", "lost its last digits"),
        ("12345", "is not one"),
        ("4006381333931abc", "is not one"),
        ("0000000000000", "wrong check digit"),
    ],
)
def test_a_bad_barcode_number_is_a_warning_and_is_not_looked_up(text: str, said: str) -> None:
    product = normalize_row({"gtin": text, "title": "Pen"})
    assert "gtin" not in product
    assert "gtin_given" not in product
    assert [said in one for one in product["warnings"]] == [True]


def test_the_zero_that_a_spreadsheet_ate_is_put_back_and_said() -> None:
    product = normalize_row({"gtin": "36000291452"})
    assert product["gtin"] == "0036000291452"
    assert "the zero it lost" in product["warnings"][0]


def test_upc_and_ean_of_one_product_are_the_same() -> None:
    assert same_gtin("036000291452", "0036000291452")
    assert same_gtin("00036000291452", "036000291452")
    assert not same_gtin("4006381333931", "0036000291452")
    assert not same_gtin(None, None)


@given(st.text("0123456789", min_size=12, max_size=12).filter(lambda one: one.strip("0")), st.integers(1, 9))
def test_every_number_with_its_check_digit_is_good_and_with_another_is_not(body: str, other: int) -> None:
    digit = check_digit(body)
    assert canonical_gtin(body + digit) == body + digit
    assert canonical_gtin(body + str((int(digit) + other) % 10)) is None


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("1.299,00 €", "1299.00", "EUR"), ("$1,299.00", "1299.00", "USD"), ("1299", "1299", None),
        ("12,99", "12.99", None), ("CHF 1'299.50", "1299.50", "CHF"), ("1 299,00 zł", "1299.00", "PLN"),
        ("£0.99", "0.99", "GBP"), ("12,- €", "12", "EUR"), ("1.234.567", "1234567", None), ("CA$ 5", "5", "CAD"),
        (".5", "0.5", None), ("$ ,50", "0.50", "USD"),
        ("Fr.5", "5", "CHF"), ("0.125", "0.125", None), ("EUR 10", "10", "EUR"),
    ],
)  # fmt: skip
def test_prices_as_people_write_them(text: str, amount: str, currency: str | None) -> None:
    assert price_and_currency(text)[:2] == (amount, currency)


def test_a_price_that_can_be_read_twice_is_read_as_thousands_and_said() -> None:
    product = normalize_row({"sku": "1", "price": "1.299"})
    assert (product["price"], product["warnings"]) == ("1299", ["price '1.299' was read as 1299"])


@pytest.mark.parametrize("price", ["on request", "-5 €", "3 for 10", "1" * 30])
def test_a_price_that_is_none_is_a_warning(price: str) -> None:
    product = normalize_row({"sku": "1", "price": price})
    assert "price" not in product
    assert "is left out" in product["warnings"][0]


def test_the_currency_column_wins_over_the_sign() -> None:
    assert normalize_row({"sku": "1", "price": "$5", "currency": "cad"})["currency"] == "CAD"
    assert "not known" in normalize_row({"sku": "1", "currency": "shells"})["warnings"][0]


def test_text_is_one_clean_line_and_addresses_are_addresses() -> None:
    product = normalize_row(
        {"sku": "\u00a0 AB-1\x00 ", "title": "Blue\n  pen\u200b", "url": "javascript:1", "image": "https://x.example/a"}
    )
    assert (product["sku"], product["title"], product["image"]) == ("AB-1", "Blue pen", "https://x.example/a")
    assert "url" not in product


@pytest.mark.parametrize("cells", [{}, {"brand": "Millrace", "price": "3"}, {"sku": " ", "gtin": "4.00638E+12"}])
def test_a_row_with_nothing_to_look_up_is_unusable(cells: dict[str, str]) -> None:
    with pytest.raises(Unusable, match="no title to look up") as caught:
        normalize_row(cells)
    assert caught.value.code == "ROW_HAS_NO_PRODUCT"


@given(st.text(max_size=60))
def test_any_text_is_cleaned_once_and_for_all_and_any_cell_is_taken(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    product = normalize_row({"sku": "1", "gtin": text, "price": text, "currency": text, "url": text, "quantity": text})
    assert product["sku"] == "1"


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("R$ 10,00", "BRL"), ("HK$10", "HKD"), ("S$ 10", "SGD"), ("NZ$10", "NZD"), ("MX$10", "MXN"), ("US$10", "USD"),
        ("$10", "USD"), ("X$10", None), ("10 cop", "COP"), ("10 a copy", None), ("10 puzzle", None),
    ],
)  # fmt: skip
def test_a_dollar_is_of_its_country_and_no_currency_is_found_inside_a_word(text: str, currency: str | None) -> None:
    product = normalize_row({"title": "T", "price": "10", "currency": text})
    assert product.get("currency") == currency
