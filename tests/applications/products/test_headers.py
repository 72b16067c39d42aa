"""Headers of strangers' tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_apps.products.headers import map_headers
from penstock_apps.products.products import Product


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("SKU", "sku"), ("Artikelnummer", "sku"), ("Art.-Nr.", "sku"), ("item no", "sku"), ("Item No.", "sku"),
        ("Référence", "sku"), ("Número de artículo", "sku"), ("Numer artykułu", "sku"), ("MPN", "sku"),
        ("EAN", "gtin"), ("EAN13", "gtin"), ("GTIN-13", "gtin"), ("UPC", "gtin"), ("barcode", "gtin"),
        ("Bar Code", "gtin"), ("Code-barres", "gtin"), ("Código de barras", "gtin"), ("Kod kreskowy", "gtin"),
        ("EAN (Stück)", "gtin"), ("Marke", "brand"), ("HERSTELLER", "brand"), ("manufacturer", "brand"),
        ("marca", "brand"), ("Marque", "brand"), ("producent", "brand"), ("Product Name", "title"),
        ("product_name", "title"), ("productName", "title"), ("Bezeichnung", "title"), ("Titel", "title"),
        ("nombre", "title"), ("Désignation", "title"), ("Nazwa produktu", "title"), ("Name", "title"),
        ("Beschreibung", "description"), ("Opis", "description"), ("Catégorie", "category"),
        ("Warengruppe", "category"), ("Prix", "price"), ("cena", "price"), ("Preis (brutto)", "price"),
        ("Precio de venta", "price"), ("Währung", "currency"), ("waluta", "currency"), ("Ilość", "quantity"),
        ("Qty.", "quantity"), ("Link", "url"), ("Image URL", "image"), ("Zdjęcie", "image"),
    ],
)  # fmt: skip
def test_common_names_in_five_languages_are_known(header: str, field: str) -> None:
    assert map_headers([header]) == {header: field}


@pytest.mark.parametrize("header", ["", "   ", "???", "Lagerort", "Colour", "File name", "商品", "Notes"])
def test_what_is_not_known_stays_without_a_field(header: str) -> None:
    assert map_headers([header]) == {header: None}


def test_a_whole_name_wins_over_one_inside_a_longer_header() -> None:
    assert map_headers(["Price of shipping", "Price"]) == {"Price of shipping": None, "Price": "price"}


def test_the_first_wins_when_two_fit_equally_well() -> None:
    assert map_headers(["Title", "Name", "EAN", "GTIN"]) == {
        "Title": "title", "Name": None, "EAN": "gtin", "GTIN": None,
    }  # fmt: skip


def test_a_second_image_is_not_taken_for_the_address_of_the_product() -> None:
    assert map_headers(["Image URL", "Image URL 2"]) == {"Image URL": "image", "Image URL 2": None}


@given(st.lists(st.one_of(st.text(max_size=20), st.sampled_from(["EAN", "ean ", "Preis", "Price €", "SKU", "Ref"]))))
def test_any_headers_are_all_answered_and_no_field_is_given_twice(headers: list[str]) -> None:
    mapped = map_headers(headers)
    given_fields = [field for field in mapped.values() if field is not None]
    assert list(mapped) == list(dict.fromkeys(headers))
    assert len(given_fields) == len(set(given_fields))
    assert set(given_fields) <= set(Product.__annotations__)
